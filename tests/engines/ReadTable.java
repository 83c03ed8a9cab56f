import static io.delta.kernel.internal.util.Utils.singletonCloseableIterator;

import com.fasterxml.jackson.databind.ObjectMapper;
import io.delta.kernel.Scan;
import io.delta.kernel.Snapshot;
import io.delta.kernel.Table;
import io.delta.kernel.data.ArrayValue;
import io.delta.kernel.data.ColumnVector;
import io.delta.kernel.data.FilteredColumnarBatch;
import io.delta.kernel.data.MapValue;
import io.delta.kernel.data.Row;
import io.delta.kernel.defaults.engine.DefaultEngine;
import io.delta.kernel.engine.Engine;
import io.delta.kernel.internal.InternalScanFileUtils;
import io.delta.kernel.internal.data.ScanStateRow;
import io.delta.kernel.types.*;
import io.delta.kernel.utils.CloseableIterator;
import io.delta.kernel.utils.FileStatus;
import java.time.Instant;
import java.time.LocalDate;
import java.time.ZoneOffset;
import java.time.format.DateTimeFormatter;
import java.util.ArrayList;
import java.util.HexFormat;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import org.apache.hadoop.conf.Configuration;

/** Prints each row of a Delta table as a line of JSON, read by Delta Kernel. Values are spelled as in values.py. */
public final class ReadTable {
    private static final DateTimeFormatter MICROSECONDS = DateTimeFormatter.ofPattern("yyyy-MM-dd'T'HH:mm:ss.SSSSSS");

    public static void main(String[] arguments) throws Exception {
        Engine engine = DefaultEngine.create(new Configuration());
        ObjectMapper json = new ObjectMapper();
        Snapshot snapshot = Table.forPath(engine, arguments[0]).getLatestSnapshot(engine);
        Scan scan = snapshot.getScanBuilder().build();
        Row state = scan.getScanState(engine);
        StructType physical = ScanStateRow.getPhysicalDataReadSchema(state);
        try (CloseableIterator<FilteredColumnarBatch> batches = scan.getScanFiles(engine)) {
            while (batches.hasNext()) {
                CloseableIterator<Row> files = batches.next().getRows();
                while (files.hasNext()) {
                    Row file = files.next();
                    FileStatus status = InternalScanFileUtils.getAddFileStatus(file);
                    var found = engine.getParquetHandler()
                            .readParquetFiles(singletonCloseableIterator(status), physical, Optional.empty())
                            .map(result -> result.getData());
                    var logical = Scan.transformPhysicalData(engine, state, file, found);
                    while (logical.hasNext()) {
                        print(logical.next(), json);
                    }
                }
            }
        }
    }

    private static void print(FilteredColumnarBatch batch, ObjectMapper json) throws Exception {
        StructType schema = batch.getData().getSchema();
        Optional<ColumnVector> selected = batch.getSelectionVector();
        for (int row = 0; row < batch.getData().getSize(); row++) {
            if (selected.isPresent() && !selected.get().getBoolean(row)) {
                continue;
            }
            Map<String, Object> line = new LinkedHashMap<>();
            for (int column = 0; column < schema.length(); column++) {
                line.put(schema.at(column).getName(), value(batch.getData().getColumnVector(column), row));
            }
            System.out.println(json.writeValueAsString(line));
        }
    }

    private static Object value(ColumnVector vector, int row) {
        DataType type = vector.getDataType();
        if (vector.isNullAt(row)) {
            return null;
        } else if (type instanceof StructType struct) {
            Map<String, Object> fields = new LinkedHashMap<>();
            for (int field = 0; field < struct.length(); field++) {
                fields.put(struct.at(field).getName(), value(vector.getChild(field), row));
            }
            return fields;
        } else if (type instanceof ArrayType) {
            ArrayValue array = vector.getArray(row);
            return values(array.getElements(), array.getSize());
        } else if (type instanceof MapType) {
            MapValue map = vector.getMap(row);
            List<Object> keys = values(map.getKeys(), map.getSize());
            List<Object> items = values(map.getValues(), map.getSize());
            Map<String, Object> found = new LinkedHashMap<>();
            for (int entry = 0; entry < map.getSize(); entry++) {
                found.put((String) keys.get(entry), items.get(entry));
            }
            return found;
        }
        return simple(vector, type, row);
    }

    private static List<Object> values(ColumnVector vector, int size) {
        List<Object> found = new ArrayList<>();
        for (int row = 0; row < size; row++) {
            found.add(value(vector, row));
        }
        return found;
    }

    private static Object simple(ColumnVector vector, DataType type, int row) {
        if (type instanceof StringType) {
            return vector.getString(row);
        } else if (type instanceof LongType) {
            return vector.getLong(row);
        } else if (type instanceof IntegerType) {
            return vector.getInt(row);
        } else if (type instanceof ShortType) {
            return vector.getShort(row);
        } else if (type instanceof ByteType) {
            return vector.getByte(row);
        } else if (type instanceof BooleanType) {
            return vector.getBoolean(row);
        } else if (type instanceof BinaryType) {
            return HexFormat.of().formatHex(vector.getBinary(row));
        } else if (type instanceof DecimalType) {
            var decimal = vector.getDecimal(row).stripTrailingZeros();
            return decimal.toPlainString();
        } else if (type instanceof FloatType) {
            return number(vector.getFloat(row));
        } else if (type instanceof DoubleType) {
            return number(vector.getDouble(row));
        } else if (type instanceof DateType) {
            return LocalDate.ofEpochDay(vector.getInt(row)).toString();
        } else if (type instanceof TimestampType) {
            return time(vector.getLong(row)) + "+00:00";
        } else if (type instanceof TimestampNTZType) {
            return time(vector.getLong(row));
        }
        throw new IllegalArgumentException("a type that is not expected type=" + type);
    }

    private static Object number(double found) {
        if (Double.isNaN(found)) {
            return "nan";
        }
        return Double.isInfinite(found) ? (found > 0 ? "inf" : "-inf") : found;
    }

    private static String time(long microseconds) {
        Instant instant = Instant.ofEpochSecond(
                Math.floorDiv(microseconds, 1_000_000L), Math.floorMod(microseconds, 1_000_000L) * 1000);
        return MICROSECONDS.format(instant.atOffset(ZoneOffset.UTC));
    }
}
