//! The structs of the Arrow C data interface, and how our memory is lent through them.
//!
//! An exported struct owns what it points to by its `private_data`, and frees it in `release`. Dropping a struct releases it,
//! so a capsule that nobody consumed leaks nothing.

use std::ffi::{CStr, CString, c_char, c_void};
use std::ptr;

#[repr(C)]
pub struct ArrowSchema {
    pub format: *const c_char,
    pub name: *const c_char,
    pub metadata: *const c_char,
    pub flags: i64,
    pub n_children: i64,
    pub children: *mut *mut ArrowSchema,
    pub dictionary: *mut ArrowSchema,
    pub release: Option<unsafe extern "C" fn(*mut ArrowSchema)>,
    pub private_data: *mut c_void,
}

#[repr(C)]
pub struct ArrowArray {
    pub length: i64,
    pub null_count: i64,
    pub offset: i64,
    pub n_buffers: i64,
    pub n_children: i64,
    pub buffers: *mut *const c_void,
    pub children: *mut *mut ArrowArray,
    pub dictionary: *mut ArrowArray,
    pub release: Option<unsafe extern "C" fn(*mut ArrowArray)>,
    pub private_data: *mut c_void,
}

#[repr(C)]
pub struct ArrowArrayStream {
    pub get_schema: Option<unsafe extern "C" fn(*mut ArrowArrayStream, *mut ArrowSchema) -> i32>,
    pub get_next: Option<unsafe extern "C" fn(*mut ArrowArrayStream, *mut ArrowArray) -> i32>,
    pub get_last_error: Option<unsafe extern "C" fn(*mut ArrowArrayStream) -> *const c_char>,
    pub release: Option<unsafe extern "C" fn(*mut ArrowArrayStream)>,
    pub private_data: *mut c_void,
}

pub const NULLABLE: i64 = 2;

// SAFETY: what the pointers lead to is owned by the struct alone, or immutable and shared by reference counts.
unsafe impl Send for ArrowSchema {}
unsafe impl Send for ArrowArray {}
unsafe impl Send for ArrowArrayStream {}

impl ArrowSchema {
    pub fn empty() -> Self {
        ArrowSchema {
            format: ptr::null(),
            name: ptr::null(),
            metadata: ptr::null(),
            flags: 0,
            n_children: 0,
            children: ptr::null_mut(),
            dictionary: ptr::null_mut(),
            release: None,
            private_data: ptr::null_mut(),
        }
    }
}

impl ArrowArray {
    pub fn empty() -> Self {
        ArrowArray {
            length: 0,
            null_count: 0,
            offset: 0,
            n_buffers: 0,
            n_children: 0,
            buffers: ptr::null_mut(),
            children: ptr::null_mut(),
            dictionary: ptr::null_mut(),
            release: None,
            private_data: ptr::null_mut(),
        }
    }
}

impl Drop for ArrowSchema {
    fn drop(&mut self) {
        if let Some(release) = self.release {
            // SAFETY: the struct was not released before, or `release` would be None.
            unsafe { release(self) }
        }
    }
}

impl Drop for ArrowArray {
    fn drop(&mut self) {
        if let Some(release) = self.release {
            // SAFETY: as above.
            unsafe { release(self) }
        }
    }
}

impl Drop for ArrowArrayStream {
    fn drop(&mut self) {
        if let Some(release) = self.release {
            // SAFETY: as above.
            unsafe { release(self) }
        }
    }
}

/// What an exported schema owns.
struct SchemaOwner {
    _format: CString,
    _name: CString,
    children: Vec<*mut ArrowSchema>,
    dictionary: *mut ArrowSchema,
}

unsafe extern "C" fn release_schema(schema: *mut ArrowSchema) {
    // SAFETY: called once, on a struct that `export_schema` made.
    unsafe {
        let owner = Box::from_raw((*schema).private_data.cast::<SchemaOwner>());
        for child in owner.children {
            drop(Box::from_raw(child));
        }
        if !owner.dictionary.is_null() {
            drop(Box::from_raw(owner.dictionary));
        }
        (*schema).release = None;
    }
}

pub fn export_schema(
    format: &CStr,
    name: &CStr,
    flags: i64,
    children: Vec<ArrowSchema>,
    dictionary: Option<ArrowSchema>,
) -> ArrowSchema {
    let mut owner = Box::new(SchemaOwner {
        _format: format.to_owned(),
        _name: name.to_owned(),
        children: children
            .into_iter()
            .map(|child| Box::into_raw(Box::new(child)))
            .collect(),
        dictionary: dictionary.map_or(ptr::null_mut(), |schema| Box::into_raw(Box::new(schema))),
    });
    ArrowSchema {
        format: owner._format.as_ptr(),
        name: owner._name.as_ptr(),
        metadata: ptr::null(),
        flags,
        n_children: owner.children.len() as i64,
        children: owner.children.as_mut_ptr(),
        dictionary: owner.dictionary,
        release: Some(release_schema),
        private_data: Box::into_raw(owner).cast(),
    }
}

/// What an exported array owns: its buffers live in `_memory`.
struct ArrayOwner<M> {
    _memory: M,
    buffers: Vec<*const c_void>,
    children: Vec<*mut ArrowArray>,
    dictionary: *mut ArrowArray,
}

unsafe extern "C" fn release_array<M>(array: *mut ArrowArray) {
    // SAFETY: called once, on a struct that `export_array::<M>` made.
    unsafe {
        let owner = Box::from_raw((*array).private_data.cast::<ArrayOwner<M>>());
        for child in owner.children {
            drop(Box::from_raw(child));
        }
        if !owner.dictionary.is_null() {
            drop(Box::from_raw(owner.dictionary));
        }
        (*array).release = None;
    }
}

pub fn export_array<M>(
    memory: M,
    length: usize,
    null_count: usize,
    buffers: Vec<*const c_void>,
    children: Vec<ArrowArray>,
    dictionary: Option<ArrowArray>,
) -> ArrowArray {
    let mut owner = Box::new(ArrayOwner {
        _memory: memory,
        buffers,
        children: children
            .into_iter()
            .map(|child| Box::into_raw(Box::new(child)))
            .collect(),
        dictionary: dictionary.map_or(ptr::null_mut(), |array| Box::into_raw(Box::new(array))),
    });
    ArrowArray {
        length: length as i64,
        null_count: null_count as i64,
        offset: 0,
        n_buffers: owner.buffers.len() as i64,
        n_children: owner.children.len() as i64,
        buffers: owner.buffers.as_mut_ptr(),
        children: owner.children.as_mut_ptr(),
        dictionary: owner.dictionary,
        release: Some(release_array::<M>),
        private_data: Box::into_raw(owner).cast(),
    }
}

impl ArrowArrayStream {
    pub fn empty() -> Self {
        ArrowArrayStream {
            get_schema: None,
            get_next: None,
            get_last_error: None,
            release: None,
            private_data: ptr::null_mut(),
        }
    }
}
