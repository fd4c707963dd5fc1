/* What is done to the bytes of each batch: its header is stamped, and if it is built anew, its records are copied.
 *
 * `stamp` makes the same header as record_batch/outgoing_batch.py, from a batch whose CRC is right. `renumber` and
 * `translate` copy records without an object for each: the same bytes as record_batch/rebuild.py makes from decoded
 * records, or None.
 *
 * None means: the records are not in the one form that an encoder gives them (a number with more bytes than it needs,
 * attributes of a record, offsets that do not ascend), or they are no records. Then rebuild.py decodes them, and copies
 * them or says what is wrong. So nothing is decided here. `renumber` reads records of format 2, `translate` messages
 * of formats 0 and 1. Either returns (records, offsets, newest, oldest, base):
 *   records  bytes: in format 2, with offsets from 0 on, uncompressed and without a header
 *   offsets  tuple of (first source offset, index of the first, count), for each stretch of consecutive ones
 *   newest, oldest, base: the largest, the smallest and the first timestamp
 */
#define PY_SSIZE_T_CLEAN
#define Py_LIMITED_API 0x030b0000
#include <Python.h>
#include <stdint.h>
#include <string.h>

#define HEADER_SIZE 61
#define CRC_AT 17
#define ATTRIBUTES_AT 21        /* the CRC covers everything from here on */
#define PRODUCER_AT 43          /* its id, its epoch and the base sequence */
#define COUNT_AT 57
#define KEPT_ATTRIBUTES 0x0f
#define TRANSACTIONAL 0x10

#define NO_ATTRIBUTES 0
#define CODEC_MASK 0x07
#define LEAST_RECORD 7          /* length, attributes, two deltas, key, value, headers: a byte each */
#define MESSAGE_FRONT 12        /* offset and size */
#define GROWTH 13               /* a longer timestamp delta (9), its effect on the length (4) */
#define FURTHEST (1LL << 60)    /* timestamps beyond it are left to the other path: their differences may overflow */

typedef struct {
    const unsigned char *at, *end;
} Reader;

typedef struct {
    PyObject *offsets;
    unsigned char *records, *to;
    int64_t *skips;
    Py_ssize_t skip_count;
    int64_t position, base, newest, oldest;
    int64_t last, stretch_first;
    Py_ssize_t count, stretch_begin;
} Copy;

static int read_number(Reader *from, int64_t *value)
{
    uint64_t found = 0;
    int shift = 0;
    while (from->at < from->end) {
        unsigned char byte = *from->at++;
        if (shift == 63 && byte > 1)
            return 0;
        found |= (uint64_t)(byte & 0x7f) << shift;
        if (byte < 0x80) {
            if (byte == 0 && shift)
                return 0;
            *value = (int64_t)(found >> 1) ^ -(int64_t)(found & 1);
            return 1;
        }
        shift += 7;
        if (shift > 63)
            return 0;
    }
    return 0;
}

/* Passes bytes with their length in front; -1 means none. */
static int pass_sized(Reader *from, int may_be_none)
{
    int64_t size;
    if (!read_number(from, &size) || size < (may_be_none ? -1 : 0))
        return 0;
    if (size > from->end - from->at)
        return 0;
    if (size > 0)
        from->at += size;
    return 1;
}

static unsigned char *write_number(unsigned char *to, int64_t value)
{
    uint64_t rest = ((uint64_t)value << 1) ^ (uint64_t)(value >> 63);
    while (rest > 0x7f) {
        *to++ = (unsigned char)(rest | 0x80);
        rest >>= 7;
    }
    *to++ = (unsigned char)rest;
    return to;
}

static int32_t big_endian_32(const unsigned char *at)
{
    return (int32_t)((uint32_t)at[0] << 24 | (uint32_t)at[1] << 16 | (uint32_t)at[2] << 8 | (uint32_t)at[3]);
}

static int64_t big_endian_64(const unsigned char *at)
{
    return (int64_t)((uint64_t)(uint32_t)big_endian_32(at) << 32 | (uint32_t)big_endian_32(at + 4));
}

static int add_stretch(Copy *copy)
{
    PyObject *stretch = Py_BuildValue("(Lnn)", (long long)copy->stretch_first, copy->stretch_begin,
                                      copy->count - copy->stretch_begin);
    int failed = stretch == NULL || PyList_Append(copy->offsets, stretch) < 0;
    Py_XDECREF(stretch);
    return failed ? -1 : 0;
}

/* Whether a record with this offset belongs into the copy. It is counted then. -1: an exception is set. */
static int admit(Copy *copy, int64_t offset, int64_t timestamp)
{
    Py_ssize_t each;
    if (offset < copy->position)
        return 0;
    for (each = 0; each < copy->skip_count; each++)
        if (copy->skips[2 * each] <= offset && offset <= copy->skips[2 * each + 1])
            return 0;
    if (copy->count == 0) {
        copy->base = copy->newest = copy->oldest = timestamp;
        copy->stretch_first = offset;
    } else {
        if (offset - copy->stretch_first != copy->count - copy->stretch_begin) {
            if (add_stretch(copy) < 0)
                return -1;
            copy->stretch_first = offset;
            copy->stretch_begin = copy->count;
        }
        if (timestamp > copy->newest)
            copy->newest = timestamp;
        if (timestamp < copy->oldest)
            copy->oldest = timestamp;
    }
    copy->count++;
    return 1;
}

/* Writes what is in front of key, value and headers. `rest`: so many bytes follow. */
static void write_front(Copy *copy, int64_t timestamp, Py_ssize_t rest)
{
    unsigned char front[16], *end = front;
    *end++ = NO_ATTRIBUTES;
    end = write_number(end, timestamp - copy->base);
    end = write_number(end, copy->count - 1);
    copy->to = write_number(copy->to, (end - front) + rest);
    memcpy(copy->to, front, (size_t)(end - front));
    copy->to += end - front;
}

static int read_item(PyObject *range, Py_ssize_t index, int64_t *value)
{
    PyObject *item = PySequence_GetItem(range, index);
    if (item == NULL)
        return -1;
    *value = PyLong_AsLongLong(item);
    Py_DECREF(item);
    return PyErr_Occurred() ? -1 : 0;
}

static int begin(Copy *copy, int64_t position, PyObject *skips, Py_ssize_t room)
{
    Py_ssize_t each;
    memset(copy, 0, sizeof *copy);
    copy->position = position;
    copy->last = -1;
    copy->skip_count = PySequence_Size(skips);
    if (copy->skip_count < 0)
        return -1;
    copy->skips = PyMem_Malloc(2 * sizeof(int64_t) * (size_t)(copy->skip_count + 1));
    if (copy->skips == NULL) {
        PyErr_NoMemory();
        return -1;
    }
    for (each = 0; each < copy->skip_count; each++) {
        PyObject *range = PySequence_GetItem(skips, each);
        int failed = range == NULL || read_item(range, 0, &copy->skips[2 * each]) < 0 ||
                     read_item(range, 1, &copy->skips[2 * each + 1]) < 0;
        Py_XDECREF(range);
        if (failed)
            return -1;
    }
    copy->offsets = PyList_New(0);
    copy->records = copy->to = PyMem_Malloc((size_t)room + 1);
    if (copy->records == NULL)
        PyErr_NoMemory();
    return copy->records != NULL && copy->offsets != NULL ? 0 : -1;
}

static PyObject *finish(Copy *copy)
{
    PyObject *records, *offsets, *result = NULL;
    if (copy->count && add_stretch(copy) < 0)
        return NULL;
    records = PyBytes_FromStringAndSize((const char *)copy->records, copy->to - copy->records);
    offsets = PyList_AsTuple(copy->offsets);
    if (records != NULL && offsets != NULL)
        result = Py_BuildValue("(OOLLL)", records, offsets, (long long)copy->newest, (long long)copy->oldest,
                               (long long)copy->base);
    Py_XDECREF(records);
    Py_XDECREF(offsets);
    return result;
}

static void release(Copy *copy)
{
    PyMem_Free(copy->skips);
    Py_XDECREF(copy->offsets);
    PyMem_Free(copy->records);
}

/* 1: all records are copied; 0: they are left to the other path; -1: an exception is set. */
static int copy_records(Copy *copy, Reader body, Py_ssize_t count, int64_t base_offset, int64_t base_timestamp,
                        int has_append_time, int64_t append_time)
{
    while (count--) {
        Reader record;
        const unsigned char *rest;
        int64_t length, delta, timestamp, offset, headers;
        int admitted;
        if (!read_number(&body, &length) || length < LEAST_RECORD - 1 || length > body.end - body.at)
            return 0;
        record.at = body.at;
        record.end = body.at += length;
        if (*record.at++ != NO_ATTRIBUTES)
            return 0;
        if (!read_number(&record, &delta) || delta > FURTHEST || delta < -FURTHEST)
            return 0;
        timestamp = has_append_time ? append_time : base_timestamp + delta;
        if (!read_number(&record, &delta) || delta < 0 || delta > INT32_MAX)
            return 0;
        offset = base_offset + delta;
        if (offset <= copy->last)
            return 0;
        copy->last = offset;
        rest = record.at;
        if (!pass_sized(&record, 1) || !pass_sized(&record, 1) || !read_number(&record, &headers) || headers < 0)
            return 0;
        while (headers--)
            if (!pass_sized(&record, 0) || !pass_sized(&record, 1))
                return 0;
        if (record.at != record.end)
            return 0;
        admitted = admit(copy, offset, timestamp);
        if (admitted < 0)
            return -1;
        if (admitted) {
            write_front(copy, timestamp, record.end - rest);
            memcpy(copy->to, rest, (size_t)(record.end - rest));
            copy->to += record.end - rest;
        }
    }
    return body.at == body.end;
}

/* Key or value of a message; its size is -1 where there is none. */
static int read_part(Reader *from, const unsigned char **part, int32_t *size)
{
    if (from->end - from->at < 4)
        return 0;
    *size = big_endian_32(from->at);
    *part = from->at += 4;
    if (*size < -1 || *size > from->end - from->at)
        return 0;
    if (*size > 0)
        from->at += *size;
    return 1;
}

static Py_ssize_t number_size(int64_t value)
{
    unsigned char number[10];
    return write_number(number, value) - number;
}

static void write_part(Copy *copy, const unsigned char *part, int32_t size)
{
    copy->to = write_number(copy->to, size);
    if (size > 0) {
        memcpy(copy->to, part, (size_t)size);
        copy->to += size;
    }
}

/* As copy_records. `shift` is added to each offset. */
static int copy_messages(Copy *copy, Reader set, int magic, int64_t shift, int has_append_time, int64_t append_time)
{
    while (set.at < set.end) {
        Reader message;
        const unsigned char *key, *value;
        int64_t offset, timestamp = -1;
        int32_t size, key_size, value_size;
        int admitted;
        if (set.end - set.at < MESSAGE_FRONT)
            return 0;
        offset = big_endian_64(set.at);
        size = big_endian_32(set.at + 8);
        set.at += MESSAGE_FRONT;
        if (size < (magic ? 14 : 6) || size > set.end - set.at)
            return 0;
        message.at = set.at + 6;
        message.end = set.at += size;
        if (message.at[-2] != magic || message.at[-1] & CODEC_MASK)
            return 0;
        if (magic) {
            timestamp = big_endian_64(message.at);
            message.at += 8;
        }
        if (has_append_time)
            timestamp = append_time;
        if (timestamp > FURTHEST || timestamp < -FURTHEST || offset < 0 || offset > FURTHEST)
            return 0;
        offset += shift;
        if (offset <= copy->last || copy->count == INT32_MAX)
            return 0;
        copy->last = offset;
        if (!read_part(&message, &key, &key_size) || !read_part(&message, &value, &value_size))
            return 0;
        if (message.at != message.end)
            return 0;
        admitted = admit(copy, offset, timestamp);
        if (admitted < 0)
            return -1;
        if (admitted) {
            write_front(copy, timestamp,
                        number_size(key_size) + (key_size > 0 ? key_size : 0) + number_size(value_size) +
                            (value_size > 0 ? value_size : 0) + 1);
            write_part(copy, key, key_size);
            write_part(copy, value, value_size);
            *copy->to++ = 0; /* no headers */
        }
    }
    return 1;
}

static int read_time(PyObject *given, int *has_time, int64_t *time)
{
    *has_time = given != Py_None;
    *time = *has_time ? PyLong_AsLongLong(given) : 0;
    return PyErr_Occurred() ? -1 : 0;
}

static int is_far(int64_t time)
{
    return time > FURTHEST || time < -FURTHEST;
}

/* The records of one batch: (bytes, count, base offset, base timestamp, append time or None). */
typedef struct {
    Py_buffer body;
    Py_ssize_t count;
    long long base_offset, base_timestamp;
    int64_t append_time;
    int has_append_time;
} Part;

static int is_plain(const Part *part)
{
    return part->count > 0 && part->count <= part->body.len / LEAST_RECORD && part->base_offset >= 0 &&
           part->base_offset <= FURTHEST && !is_far(part->base_timestamp) && !is_far(part->append_time);
}

static int read_part_of(PyObject *parts, Py_ssize_t index, Part *part)
{
    PyObject *given_time, *given = PySequence_GetItem(parts, index);
    int failed = given == NULL || !PyArg_ParseTuple(given, "y*nLLO", &part->body, &part->count, &part->base_offset,
                                                    &part->base_timestamp, &given_time);
    if (!failed && read_time(given_time, &part->has_append_time, &part->append_time) < 0) {
        PyBuffer_Release(&part->body);
        failed = 1;
    }
    Py_XDECREF(given);
    return failed ? -1 : 0;
}

static PyObject *renumber(PyObject *module, PyObject *arguments)
{
    Py_ssize_t given, parsed = 0, each, room = 0;
    long long position;
    int copied = 1;
    PyObject *parts, *skips, *result = NULL;
    Part *part;
    Copy copy;
    if (!PyArg_ParseTuple(arguments, "OLO", &parts, &position, &skips) || (given = PySequence_Size(parts)) < 0)
        return NULL;
    memset(&copy, 0, sizeof copy);
    part = PyMem_Malloc(sizeof(Part) * (size_t)(given + 1));
    if (part == NULL)
        return PyErr_NoMemory();
    for (; parsed < given; parsed++) {
        if (read_part_of(parts, parsed, &part[parsed]) < 0)
            goto done;
        if (is_plain(&part[parsed]))
            room += part[parsed].body.len + GROWTH * part[parsed].count;
        else
            copied = 0;
    }
    if (copied > 0 && begin(&copy, position, skips, room) < 0)
        goto done;
    for (each = 0; each < given && copied > 0; each++) {
        const unsigned char *from = part[each].body.buf;
        Reader records = {from, from + part[each].body.len};
        copied = copy_records(&copy, records, part[each].count, part[each].base_offset, part[each].base_timestamp,
                              part[each].has_append_time, part[each].append_time);
    }
    if (copied > 0)
        result = finish(&copy);
    else if (copied == 0)
        result = Py_NewRef(Py_None);
done:
    release(&copy);
    for (each = 0; each < parsed; each++)
        PyBuffer_Release(&part[each].body);
    PyMem_Free(part);
    return result;
}

static PyObject *translate(PyObject *module, PyObject *arguments)
{
    Py_buffer set;
    int magic, has_append_time, copied = 0;
    long long last_offset, position;
    int64_t append_time, shift = 0;
    PyObject *given_time, *skips, *result = NULL;
    Copy copy;
    if (!PyArg_ParseTuple(arguments, "y*iLOLO", &set, &magic, &last_offset, &given_time, &position, &skips))
        return NULL;
    memset(&copy, 0, sizeof copy);
    if (read_time(given_time, &has_append_time, &append_time) < 0)
        goto done;
    if (!is_far(append_time) && !is_far(last_offset)) {
        Reader messages = {set.buf, (const unsigned char *)set.buf + set.len};
        if (last_offset >= 0) {
            Reader each = messages;
            int64_t inner = -1;
            while (each.end - each.at >= MESSAGE_FRONT) {
                int32_t size = big_endian_32(each.at + 8);
                inner = big_endian_64(each.at);
                if (size < 0 || size > each.end - each.at - MESSAGE_FRONT)
                    break;
                each.at += MESSAGE_FRONT + size;
            }
            if (inner < 0 || inner > last_offset) {
                result = Py_NewRef(Py_None);
                goto done;
            }
            shift = last_offset - inner;
        }
        if (begin(&copy, position, skips, set.len + set.len / 4 + 64) < 0)
            goto done;
        copied = copy_messages(&copy, messages, magic, shift, has_append_time, append_time);
    }
    if (copied > 0)
        result = finish(&copy);
    else if (copied == 0)
        result = Py_NewRef(Py_None);
done:
    release(&copy);
    PyBuffer_Release(&set);
    return result;
}

/* A CRC-32C is a polynomial over GF(2) modulo this one; the highest bit of a number is the coefficient of x^0. Each zero
 * byte behind the others multiplies it by x^8. */
#define POLYNOMIAL 0x82f63b78u
#define ONE 0x80000000u

static uint32_t crc_of_byte[256];
static uint32_t of_zeros[4][256]; /* what so many zero bytes, times 256^index, multiply by */

static uint32_t times_x(uint32_t factor)
{
    return factor >> 1 ^ (POLYNOMIAL & (0u - (factor & 1)));
}

static uint32_t multiply(uint32_t left, uint32_t right)
{
    uint32_t product = 0;
    for (; left; left <<= 1, right = times_x(right))
        product ^= right & (0u - (left >> 31));
    return product;
}

static void fill_tables(void)
{
    uint32_t byte, factor = ONE >> 8;
    int index, bit;
    for (byte = 0; byte < 256; byte++) {
        crc_of_byte[byte] = byte;
        for (bit = 0; bit < 8; bit++)
            crc_of_byte[byte] = times_x(crc_of_byte[byte]);
    }
    for (index = 0; index < 4; index++) {
        of_zeros[index][0] = ONE;
        for (byte = 1; byte < 256; byte++)
            of_zeros[index][byte] = multiply(of_zeros[index][byte - 1], factor);
        factor = multiply(of_zeros[index][255], factor);
    }
}

/* What the CRC of bytes is changed by, if some are changed by `changes` and `zeros` bytes are behind them. */
static uint32_t change_of_crc(const unsigned char *changes, Py_ssize_t size, Py_ssize_t zeros)
{
    uint32_t crc = 0;
    int index = 0;
    while (size--)
        crc = crc >> 8 ^ crc_of_byte[(crc ^ *changes++) & 0xff];
    for (; zeros; zeros >>= 8, index++)
        crc = multiply(of_zeros[index & 3][zeros & 0xff], crc);
    return crc;
}

static void write_big_endian(unsigned char *to, int size, uint64_t value)
{
    for (; size--; value >>= 8)
        to[size] = (unsigned char)value;
}

/* The records are not read: their part in the CRC stays what it is. */
static PyObject *stamp(PyObject *module, PyObject *const *given, Py_ssize_t count)
{
    Py_buffer batch;
    unsigned char header[HEADER_SIZE], changes[COUNT_AT - ATTRIBUTES_AT];
    const unsigned char *was;
    long long producer_id;
    long epoch, sequence;
    int transactional, at;
    PyObject *result = NULL;
    if (count != 5) {
        PyErr_SetString(PyExc_TypeError, "stamp: a batch, a producer's id and epoch, a sequence, transactional or not");
        return NULL;
    }
    if (PyObject_GetBuffer(given[0], &batch, PyBUF_SIMPLE) < 0)
        return NULL;
    producer_id = PyLong_AsLongLong(given[1]);
    epoch = PyLong_AsLong(given[2]);
    sequence = PyLong_AsLong(given[3]);
    transactional = PyObject_IsTrue(given[4]);
    if (PyErr_Occurred())
        goto done;
    if (batch.len < HEADER_SIZE || epoch != (int16_t)epoch || sequence != (int32_t)sequence) {
        PyErr_SetString(PyExc_ValueError, "stamp: no whole header, or an epoch or a sequence that has no place in one");
        goto done;
    }
    was = batch.buf;
    memcpy(header, was, HEADER_SIZE);
    memset(header, 0, 8); /* the base offset */
    header[ATTRIBUTES_AT] = 0;
    header[ATTRIBUTES_AT + 1] &= KEPT_ATTRIBUTES;
    if (transactional)
        header[ATTRIBUTES_AT + 1] |= TRANSACTIONAL;
    write_big_endian(header + PRODUCER_AT, 8, (uint64_t)producer_id);
    write_big_endian(header + PRODUCER_AT + 8, 2, (uint64_t)epoch);
    write_big_endian(header + PRODUCER_AT + 10, 4, (uint64_t)sequence);
    for (at = ATTRIBUTES_AT; at < COUNT_AT; at++)
        changes[at - ATTRIBUTES_AT] = header[at] ^ was[at];
    write_big_endian(header + CRC_AT, 4,
                     (uint32_t)big_endian_32(was + CRC_AT) ^
                         change_of_crc(changes, sizeof changes, batch.len - COUNT_AT));
    result = PyBytes_FromStringAndSize((const char *)header, HEADER_SIZE);
done:
    PyBuffer_Release(&batch);
    return result;
}

static PyMethodDef methods[] = {
    {"stamp", (PyCFunction)(void (*)(void))stamp, METH_FASTCALL,
     "stamp(batch, producer_id, producer_epoch, base_sequence, transactional): the header of a batch with a right CRC."},
    {"renumber", renumber, METH_VARARGS,
     "renumber(batches, position, skips): records of format 2, of one batch or of several."},
    {"translate", translate, METH_VARARGS,
     "translate(messages, magic, last_offset, append_time, position, skips): messages of format 0 or 1."},
    {NULL, NULL, 0, NULL},
};

static struct PyModuleDef_Slot slots[] = {{0, NULL}};

static struct PyModuleDef definition = {
    PyModuleDef_HEAD_INIT, "compiled_records", "Headers are stamped, records copied without an object for each.", 0,
    methods, slots,
};

PyMODINIT_FUNC PyInit_compiled_records(void)
{
    fill_tables();
    return PyModuleDef_Init(&definition);
}
