//! What can go wrong with input: a kind, which becomes the Python class of the same name, a reason, and a place.

use pyo3::PyErr;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    MalformedFrame,
    LimitExceeded,
    UnsupportedOption,
    UnknownLookupEntry,
    UnexpectedRow,
    InvalidTerm,
    InvalidSyntax,
    TransactionError,
    UsageError,
}

impl Kind {
    /// The name of the class in `patchlog.errors`.
    pub fn class_name(self) -> &'static str {
        match self {
            Kind::MalformedFrame => "MalformedFrame",
            Kind::LimitExceeded => "LimitExceeded",
            Kind::UnsupportedOption => "UnsupportedOption",
            Kind::UnknownLookupEntry => "UnknownLookupEntry",
            Kind::UnexpectedRow => "UnexpectedRow",
            Kind::InvalidTerm => "InvalidTerm",
            Kind::InvalidSyntax => "InvalidSyntax",
            Kind::TransactionError => "TransactionError",
            Kind::UsageError => "UsageError",
        }
    }
}

#[derive(Debug)]
pub struct Fault {
    pub kind: Kind,
    pub reason: String,
    pub frame: Option<u64>,
    pub row: Option<u64>,
    pub line: Option<u64>,
    /// An exception that Python raised while we called it; it is passed on as it is.
    pub python: Option<PyErr>,
}

/// Faults are rare and results are everywhere: the box keeps results small.
pub type Result<T> = std::result::Result<T, Box<Fault>>;

impl Fault {
    pub fn boxed(kind: Kind, reason: impl Into<String>) -> Box<Fault> {
        Box::new(Fault {
            kind,
            reason: reason.into(),
            frame: None,
            row: None,
            line: None,
            python: None,
        })
    }

    pub fn at_frame(mut self: Box<Self>, frame: u64) -> Box<Self> {
        self.frame.get_or_insert(frame);
        self
    }

    pub fn at_row(mut self: Box<Self>, row: u64) -> Box<Self> {
        self.row.get_or_insert(row);
        self
    }

    pub fn at_line(mut self: Box<Self>, line: u64) -> Box<Self> {
        self.line.get_or_insert(line);
        self
    }
}

impl From<PyErr> for Box<Fault> {
    fn from(error: PyErr) -> Self {
        let mut fault = Fault::boxed(Kind::UsageError, "");
        fault.python = Some(error);
        fault
    }
}

macro_rules! fault_constructors {
    ($($name:ident => $kind:ident),* $(,)?) => {
        $(
            #[cold]
            pub fn $name(reason: impl Into<String>) -> Box<Fault> {
                Fault::boxed(Kind::$kind, reason)
            }
        )*
    };
}

fault_constructors! {
    malformed => MalformedFrame,
    limit_exceeded => LimitExceeded,
    unsupported => UnsupportedOption,
    unknown_entry => UnknownLookupEntry,
    unexpected_row => UnexpectedRow,
    invalid_term => InvalidTerm,
    invalid_syntax => InvalidSyntax,
    transaction_error => TransactionError,
    usage_error => UsageError,
}
