import eu.neverblink.jelly.convert.jena.JenaConverterFactory;
import eu.neverblink.jelly.convert.jena.riot.JellyFormatVariant;
import eu.neverblink.jelly.convert.jena.riot.JellyLanguage;
import eu.neverblink.jelly.convert.jena.riot.JellyStreamWriter;
import eu.neverblink.jelly.core.JellyOptions;
import eu.neverblink.jelly.core.proto.v1.LogicalStreamType;
import eu.neverblink.jelly.core.proto.v1.PhysicalStreamType;
import eu.neverblink.jelly.core.proto.v1.RdfStreamOptions;

import com.sun.management.OperatingSystemMXBean;
import java.io.BufferedInputStream;
import java.io.IOException;
import java.io.InputStream;
import java.io.OutputStream;
import java.lang.management.ManagementFactory;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import org.apache.jena.graph.Node;
import org.apache.jena.graph.Triple;
import org.apache.jena.rdfpatch.changes.RDFChangesBase;
import org.apache.jena.rdfpatch.text.RDFChangesWriterText;
import org.apache.jena.rdfpatch.text.RDFPatchReaderText;
import org.apache.jena.riot.Lang;
import org.apache.jena.riot.RDFParser;
import org.apache.jena.riot.RDFWriter;
import org.apache.jena.riot.system.ErrorHandlerFactory;
import org.apache.jena.riot.system.StreamRDF;
import org.apache.jena.riot.system.StreamRDFBase;
import org.apache.jena.riot.system.StreamRDFWriter;
import org.apache.jena.sparql.core.Quad;
import org.apache.jena.sys.JenaSystem;

/**
 * The JVM's side of the benchmarks: one task, several rounds in one JVM, so that the best round is a warm one.
 *
 * Usage: JvmBench TASK FILE ROUNDS. Prints one JSON line with the statements of a round, the best wall and CPU seconds
 * (of the whole process: garbage collector and compiler included), and the bytes of output.
 */
public final class JvmBench {
    private interface Task {
        /** One round; returns the number of statements. */
        long run() throws IOException;
    }

    private static final class CountingSink extends StreamRDFBase {
        long statements;

        @Override
        public void triple(Triple triple) {
            statements++;
        }

        @Override
        public void quad(Quad quad) {
            statements++;
        }
    }

    private static final class CountingChanges extends RDFChangesBase {
        long operations;

        @Override
        public void add(Node g, Node s, Node p, Node o) {
            operations++;
        }

        @Override
        public void delete(Node g, Node s, Node p, Node o) {
            operations++;
        }
    }

    private static final class CountingOutput extends OutputStream {
        long bytes;

        @Override
        public void write(int b) {
            bytes++;
        }

        @Override
        public void write(byte[] data, int offset, int length) {
            bytes += length;
        }
    }

    private static final long MAX_NANOSECONDS = 20_000_000_000L;

    private static long outputBytes;

    public static void main(String[] arguments) throws IOException {
        JenaSystem.init();
        JellyLanguage.register();
        Task task = task(arguments[0], Path.of(arguments[1]));
        int rounds = Integer.parseInt(arguments[2]);
        var system = (OperatingSystemMXBean) ManagementFactory.getOperatingSystemMXBean();
        long statements = 0;
        double wall = Double.MAX_VALUE;
        double cpu = Double.MAX_VALUE;
        long begin = System.nanoTime();
        for (int round = 0; round < rounds && System.nanoTime() - begin < MAX_NANOSECONDS; round++) {
            long wallStart = System.nanoTime();
            long cpuStart = system.getProcessCpuTime();
            statements = task.run();
            wall = Math.min(wall, (System.nanoTime() - wallStart) / 1e9);
            cpu = Math.min(cpu, (system.getProcessCpuTime() - cpuStart) / 1e9);
        }
        System.out.printf(
            java.util.Locale.ROOT,
            "{\"statements\": %d, \"wall\": %.6f, \"cpu\": %.6f, \"output_bytes\": %d}%n",
            statements, wall, cpu, outputBytes);
    }

    private static Task task(String name, Path file) throws IOException {
        return switch (name) {
            case "parse-jelly" -> () -> parse(file, JellyLanguage.JELLY);
            case "parse-text" -> () -> parse(file, textOf(file));
            case "write-jelly-big" -> {
                Statements statements = Statements.load(file);
                yield () -> writeJelly(statements, JellyOptions.BIG_STRICT);
            }
            case "write-jelly-small" -> {
                Statements statements = Statements.load(file);
                yield () -> writeJelly(statements, JellyOptions.SMALL_STRICT);
            }
            case "transcode-jelly-big" -> () -> transcode(file);
            case "read-patch-text" -> () -> readPatchText(file);
            case "write-patch-text" -> {
                Statements statements = Statements.load(file);
                yield () -> writePatchText(statements);
            }
            default -> throw new IllegalArgumentException("unknown task: " + name);
        };
    }

    private static long parse(Path file, Lang lang) throws IOException {
        CountingSink sink = new CountingSink();
        try (InputStream input = new BufferedInputStream(Files.newInputStream(file), 1 << 20)) {
            parser(input, lang, sink);
        }
        return sink.statements;
    }

    private static void parser(InputStream input, Lang lang, StreamRDF sink) {
        RDFParser.source(input).lang(lang).checking(false)
            .errorHandler(ErrorHandlerFactory.errorHandlerNoWarnings).parse(sink);
    }

    private static Lang textOf(Path file) {
        return file.toString().endsWith(".nq") ? Lang.NQUADS : Lang.NTRIPLES;
    }

    private static JellyStreamWriter writer(RdfStreamOptions preset, boolean quads, OutputStream output) {
        RdfStreamOptions options = preset.clone()
            .setPhysicalType(quads ? PhysicalStreamType.QUADS : PhysicalStreamType.TRIPLES)
            .setLogicalType(quads ? LogicalStreamType.FLAT_QUADS : LogicalStreamType.FLAT_TRIPLES);
        JellyFormatVariant variant = JellyFormatVariant.builder().options(options).build();
        return JellyStreamWriter.create(JenaConverterFactory.getInstance(), variant, output);
    }

    private static long writeJelly(Statements statements, RdfStreamOptions preset) {
        CountingOutput output = new CountingOutput();
        JellyStreamWriter writer = writer(preset, statements.quads(), output);
        writer.start();
        statements.forEach(writer);
        writer.finish();
        outputBytes = output.bytes;
        return statements.size();
    }

    /** Text in, Jelly out: what a converter does, terms and all. */
    private static long transcode(Path file) throws IOException {
        CountingOutput output = new CountingOutput();
        boolean quads = textOf(file) == Lang.NQUADS;
        JellyStreamWriter writer = writer(JellyOptions.BIG_STRICT, quads, output);
        long[] statements = {0};
        try (InputStream input = new BufferedInputStream(Files.newInputStream(file), 1 << 20)) {
            writer.start();
            parser(input, textOf(file), new StreamRDFBase() {
                @Override
                public void triple(Triple triple) {
                    statements[0]++;
                    writer.triple(triple);
                }

                @Override
                public void quad(Quad quad) {
                    statements[0]++;
                    writer.quad(quad);
                }
            });
            writer.finish();
        }
        outputBytes = output.bytes;
        return statements[0];
    }

    private static long readPatchText(Path file) throws IOException {
        CountingChanges changes = new CountingChanges();
        try (InputStream input = new BufferedInputStream(Files.newInputStream(file), 1 << 20)) {
            new RDFPatchReaderText(input).apply(changes);
        }
        return changes.operations;
    }

    private static long writePatchText(Statements statements) {
        CountingOutput output = new CountingOutput();
        try (RDFChangesWriterText writer = RDFChangesWriterText.create(output)) {
            writer.start();
            writer.txnBegin();
            for (Triple t : statements.triples) {
                writer.add(null, t.getSubject(), t.getPredicate(), t.getObject());
            }
            for (Quad q : statements.quadList) {
                writer.add(q.getGraph(), q.getSubject(), q.getPredicate(), q.getObject());
            }
            writer.txnCommit();
            writer.finish();
        }
        outputBytes = output.bytes;
        return statements.size();
    }

    /** The statements of an N-Triples or N-Quads file as objects, so that writing is measured without parsing. */
    private record Statements(List<Triple> triples, List<Quad> quadList) {
        static Statements load(Path file) throws IOException {
            Statements statements = new Statements(new ArrayList<>(), new ArrayList<>());
            try (InputStream input = new BufferedInputStream(Files.newInputStream(file), 1 << 20)) {
                parser(input, textOf(file), new StreamRDFBase() {
                    @Override
                    public void triple(Triple triple) {
                        statements.triples.add(triple);
                    }

                    @Override
                    public void quad(Quad quad) {
                        statements.quadList.add(quad);
                    }
                });
            }
            return statements;
        }

        boolean quads() {
            return !quadList.isEmpty();
        }

        long size() {
            return triples.size() + quadList.size();
        }

        void forEach(StreamRDF sink) {
            if (quads()) {
                quadList.forEach(sink::quad);
            } else {
                triples.forEach(sink::triple);
            }
        }
    }
}
