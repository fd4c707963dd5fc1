/* The work on the bytes of each batch: stamps, CRCs, groups of small batches, and copies of records.
 *
 * `stamp` makes the same header as record_batch/layout.py, from a batch whose CRC is right. `crc32c` continues a
 * CRC-32C, by the processor's own instruction if it has one. `gather` finds small batches that follow each other, so that
 * no object is made for each. `join_frames` makes one LZ4 frame of theirs.
 *
 * `read` makes an object for each record, as record_batch/pure_python_codec.py does. `renumber`, `join` and `translate`
 * copy records without objects, into the same bytes that record_batch/rebuild.py makes of decoded records. `renumber`
 * reads the records of a batch of format 2, `join` those of several, `translate` messages of formats 0 and 1.
 *
 * `renumber` and `translate` take rules, which drop records and change headers (lockstep_rules/record_rules.py). Only the
 * names of headers are read for them. Without rules they are empty bytes.
 *
 * Each of these four may return None. Then the records do not have the one form that an encoder gives them, or they are
 * damaged. Examples are a number with more bytes than it needs, a record with attributes, and offsets that do not ascend.
 * Plain Python decodes such records, and copies them or reports what is wrong. So nothing is decided here.
 *
 * `renumber`, `join` and `translate` return (records, offsets, newest, oldest, base):
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
#define PREFIX 12               /* base offset and length; the length counts the bytes behind them */
#define CRC_AT 17
#define ATTRIBUTES_AT 21        /* the CRC covers everything from here on */
#define PRODUCER_AT 43          /* its id, its epoch and the base sequence */
#define COUNT_AT 57
#define KEPT_ATTRIBUTES 0x0f
#define TRANSACTIONAL 0x10

#define NO_ATTRIBUTES 0
#define CODEC_MASK 0x07
#define LOG_APPEND_TIME 0x08
#define LEAST_RECORD 7          /* length, attributes, two deltas, key, value, headers: a byte each */
#define NO_VALUE 1              /* the length -1, as records have it */
#define LEAST_HEADER 2          /* name and value */
#define MESSAGE_FRONT 12        /* offset and size */
#define LEAST_MESSAGE 26        /* one of format 0, with neither key nor value */
#define GROWTH 18               /* longer deltas of timestamp (9) and offset (4), their effect on the length (5) */
#define FURTHEST (1LL << 60)    /* timestamps and offsets beyond it are decoded in Python: differences may overflow */

typedef struct {
    const unsigned char *at, *end;
} Reader;

/* The name of a header, or the beginning of names. */
typedef struct {
    const unsigned char *at;
    Py_ssize_t size;
    int is_prefix;
} Name;

#define HAS_HEADER 1
#define IS_TOMBSTONE 2

typedef struct {
    int kind, negated;
    Name name;
} Condition;

#define DROP_RECORD 1
#define DROP_HEADERS 2
#define ADD_HEADER 3

typedef struct {
    int effect;
    Name name;                  /* of the headers that are dropped */
    const unsigned char *added; /* the header that is added, as a record has it */
    Py_ssize_t added_size, name_at;
    Condition *conditions;      /* all of them have to hold */
    Py_ssize_t condition_count;
} Rule;

typedef struct {
    const unsigned char *name, *at;
    Py_ssize_t name_size, size; /* `at` and `size` have the whole header */
} Header;

typedef struct {
    Rule *rules;
    Condition *conditions;
    unsigned char *added;
    Py_ssize_t count, added_size;
    Header *headers; /* those of one record */
    Py_ssize_t header_count, header_room;
} Rules;

typedef struct {
    PyObject *offsets;
    unsigned char *records, *to;
    Rules rules;
    int64_t *skips;
    Py_ssize_t skip_count;
    int64_t position, base, newest, oldest;
    int64_t last, stretch_first;
    Py_ssize_t count, stretch_begin;
} Copy;

static int read_number(Reader *from, int64_t *value)
{
    uint64_t bits = 0;
    int shift = 0;
    while (from->at < from->end) {
        unsigned char byte = *from->at++;
        if (shift == 63 && byte > 1)
            return 0;
        bits |= (uint64_t)(byte & 0x7f) << shift;
        if (byte < 0x80) {
            if (byte == 0 && shift)
                return 0;
            *value = (int64_t)(bits >> 1) ^ -(int64_t)(bits & 1);
            return 1;
        }
        shift += 7;
        if (shift > 63)
            return 0;
    }
    return 0;
}

/* Skips bytes with their length in front; -1 means none. */
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

/* Returns 1 and counts the record if it belongs into the copy, 0 if it does not, -1 if an exception is set. */
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

/* Writes the fields in front of key, value and headers, which take `rest` bytes. */
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

static uint32_t little_endian_32(const unsigned char *at)
{
    return (uint32_t)at[0] | (uint32_t)at[1] << 8 | (uint32_t)at[2] << 16 | (uint32_t)at[3] << 24;
}

static int read_byte(Reader *from, int *value)
{
    if (from->at == from->end)
        return 0;
    *value = *from->at++;
    return 1;
}

static int read_text(Reader *from, const unsigned char **at, Py_ssize_t *size)
{
    if (from->end - from->at < 4)
        return 0;
    *size = (Py_ssize_t)little_endian_32(from->at);
    *at = from->at += 4;
    if (*size > from->end - from->at)
        return 0;
    from->at += *size;
    return 1;
}

static int read_name(Reader *from, Name *name)
{
    return read_byte(from, &name->is_prefix) && read_text(from, &name->at, &name->size);
}

/* Reads one rule. Its header, if it adds one, is encoded at `*added`. */
static int read_rule(Reader *from, Rule *rule, Condition *conditions, unsigned char **added)
{
    int count;
    rule->conditions = conditions;
    rule->condition_count = 0;
    if (!read_byte(from, &rule->effect))
        return 0;
    if (rule->effect == DROP_HEADERS) {
        if (!read_name(from, &rule->name))
            return 0;
    } else if (rule->effect == ADD_HEADER) {
        const unsigned char *value;
        Py_ssize_t value_size;
        unsigned char *to = *added;
        if (!read_text(from, &rule->name.at, &rule->name.size) || !read_text(from, &value, &value_size))
            return 0;
        rule->added = to;
        to = write_number(to, rule->name.size);
        rule->name_at = to - *added;
        memcpy(to, rule->name.at, (size_t)rule->name.size);
        to = write_number(to + rule->name.size, value_size);
        memcpy(to, value, (size_t)value_size);
        to += value_size;
        rule->added_size = to - *added;
        *added = to;
    } else if (rule->effect != DROP_RECORD) {
        return 0;
    }
    if (!read_byte(from, &count))
        return 0;
    for (; count--; rule->condition_count++) {
        Condition *condition = &conditions[rule->condition_count];
        if (!read_byte(from, &condition->kind) || !read_byte(from, &condition->negated))
            return 0;
        if (condition->kind == HAS_HEADER ? !read_name(from, &condition->name) : condition->kind != IS_TOMBSTONE)
            return 0;
    }
    return 1;
}

/* Returns 0, or -1 with an exception set. The program has to outlive the rules. */
static int read_rules(Rules *rules, const Py_buffer *program)
{
    Reader from = {program->buf, (const unsigned char *)program->buf + program->len};
    size_t most = (size_t)program->len + 1;
    Condition *conditions;
    unsigned char *added;
    if (!program->len)
        return 0;
    rules->rules = PyMem_Malloc(most * sizeof(Rule));
    rules->conditions = conditions = PyMem_Malloc(most * sizeof(Condition));
    rules->added = added = PyMem_Malloc(2 * most + 16); /* its lengths may take 10 bytes and not 8 */
    if (rules->rules == NULL || conditions == NULL || added == NULL) {
        PyErr_NoMemory();
        return -1;
    }
    while (from.at < from.end) {
        Rule *rule = &rules->rules[rules->count++];
        if (!read_rule(&from, rule, conditions, &added)) {
            PyErr_SetString(PyExc_ValueError, "the rules cannot be read");
            return -1;
        }
        conditions += rule->condition_count;
    }
    rules->added_size = added - rules->added;
    return 0;
}

static void release_rules(Rules *rules)
{
    PyMem_Free(rules->rules);
    PyMem_Free(rules->conditions);
    PyMem_Free(rules->added);
    PyMem_Free(rules->headers);
}

/* Returns 0, or -1 with an exception set. */
static int add_header(Rules *rules, Header header)
{
    if (rules->header_count == rules->header_room) {
        Py_ssize_t room = 2 * rules->header_room + 16;
        Header *headers = PyMem_Realloc(rules->headers, (size_t)room * sizeof(Header));
        if (headers == NULL) {
            PyErr_NoMemory();
            return -1;
        }
        rules->headers = headers;
        rules->header_room = room;
    }
    rules->headers[rules->header_count++] = header;
    return 0;
}

static int has_name(const Header *header, const Name *name)
{
    if (name->is_prefix ? header->name_size < name->size : header->name_size != name->size)
        return 0;
    return !memcmp(header->name, name->at, (size_t)name->size);
}

static int holds(const Condition *condition, const Rules *rules, int is_tombstone)
{
    int is_so = is_tombstone;
    if (condition->kind == HAS_HEADER) {
        Py_ssize_t each;
        for (is_so = 0, each = 0; !is_so && each < rules->header_count; each++)
            is_so = has_name(&rules->headers[each], &condition->name);
    }
    return is_so != condition->negated;
}

static int all_hold(const Rule *rule, const Rules *rules, int is_tombstone)
{
    Py_ssize_t each;
    for (each = 0; each < rule->condition_count; each++)
        if (!holds(&rule->conditions[each], rules, is_tombstone))
            return 0;
    return 1;
}

/* Applies the rules to the headers of one record. Returns 1 if the record stays, 0 if it is dropped, -1 if an exception
 * is set. */
static int apply_rules(Rules *rules, int is_tombstone)
{
    Py_ssize_t index, from, to;
    for (index = 0; index < rules->count; index++) {
        const Rule *rule = &rules->rules[index];
        if (!all_hold(rule, rules, is_tombstone))
            continue;
        if (rule->effect == DROP_RECORD)
            return 0;
        if (rule->effect == ADD_HEADER) {
            Header header = {rule->added + rule->name_at, rule->added, rule->name.size, rule->added_size};
            if (add_header(rules, header) < 0)
                return -1;
            continue;
        }
        for (from = to = 0; from < rules->header_count; from++)
            if (!has_name(&rules->headers[from], &rule->name))
                rules->headers[to++] = rules->headers[from];
        rules->header_count = to;
    }
    return 1;
}

/* Returns the most bytes by which the rules make a record longer: its headers, their number, its own length. */
static Py_ssize_t growth_by(const Rules *rules)
{
    return rules->count ? rules->added_size + 10 : 0;
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
    release_rules(&copy->rules);
    PyMem_Free(copy->skips);
    Py_XDECREF(copy->offsets);
    PyMem_Free(copy->records);
}

static Py_ssize_t number_size(int64_t value)
{
    unsigned char number[10];
    return write_number(number, value) - number;
}

/* Returns the bytes that the headers take that the rules have left, with their number. */
static Py_ssize_t headers_size(const Rules *rules)
{
    Py_ssize_t each, size = number_size(rules->header_count);
    for (each = 0; each < rules->header_count; each++)
        size += rules->headers[each].size;
    return size;
}

static void write_headers(Copy *copy)
{
    const Rules *rules = &copy->rules;
    Py_ssize_t each;
    copy->to = write_number(copy->to, rules->header_count);
    for (each = 0; each < rules->header_count; each++) {
        memcpy(copy->to, rules->headers[each].at, (size_t)rules->headers[each].size);
        copy->to += rules->headers[each].size;
    }
}

/* Returns 1 if all records are copied, 0 if Python has to decode them, -1 if an exception is set. */
static int copy_records(Copy *copy, Reader *body, Py_ssize_t count, int64_t base_offset, int64_t last_delta,
                        int64_t base_timestamp, int has_append_time, int64_t append_time)
{
    while (count--) {
        Reader record;
        const unsigned char *rest, *value, *front_end;
        int64_t length, delta, timestamp, offset, headers;
        int admitted, kept = 1;
        if (!read_number(body, &length) || length < LEAST_RECORD - 1 || length > body->end - body->at)
            return 0;
        record.at = body->at;
        record.end = body->at += length;
        if (*record.at++ != NO_ATTRIBUTES)
            return 0;
        if (!read_number(&record, &delta) || delta > FURTHEST || delta < -FURTHEST)
            return 0;
        timestamp = has_append_time ? append_time : base_timestamp + delta;
        if (!read_number(&record, &delta) || delta < 0 || delta > last_delta)
            return 0;
        offset = base_offset + delta;
        if (offset <= copy->last)
            return 0;
        copy->last = offset;
        rest = record.at;
        if (!pass_sized(&record, 1))
            return 0;
        value = record.at;
        if (!pass_sized(&record, 1))
            return 0;
        front_end = record.at;
        if (!read_number(&record, &headers) || headers < 0)
            return 0;
        copy->rules.header_count = 0;
        while (headers--) {
            Header header = {NULL, record.at, 0, 0};
            if (!read_number(&record, &delta) || delta < 0 || delta > record.end - record.at)
                return 0;
            header.name = record.at;
            header.name_size = (Py_ssize_t)delta;
            record.at += delta;
            if (!pass_sized(&record, 1))
                return 0;
            header.size = record.at - header.at;
            if (copy->rules.count && add_header(&copy->rules, header) < 0)
                return -1;
        }
        if (record.at != record.end)
            return 0;
        if (copy->rules.count) {
            kept = apply_rules(&copy->rules, *value == NO_VALUE);
            if (kept < 0)
                return -1;
        }
        admitted = kept ? admit(copy, offset, timestamp) : 0;
        if (admitted < 0)
            return -1;
        if (admitted && copy->rules.count) {
            write_front(copy, timestamp, front_end - rest + headers_size(&copy->rules));
            memcpy(copy->to, rest, (size_t)(front_end - rest));
            copy->to += front_end - rest;
            write_headers(copy);
        } else if (admitted) {
            write_front(copy, timestamp, record.end - rest);
            memcpy(copy->to, rest, (size_t)(record.end - rest));
            copy->to += record.end - rest;
        }
    }
    return 1;
}

/* Reads the key or the value of a message; a size of -1 means none. */
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

static void write_part(Copy *copy, const unsigned char *part, int32_t size)
{
    copy->to = write_number(copy->to, size);
    if (size > 0) {
        memcpy(copy->to, part, (size_t)size);
        copy->to += size;
    }
}

/* Copies the messages of a set; `shift` is added to each offset. Returns as copy_records. */
static int copy_messages(Copy *copy, Reader set, int magic, int64_t shift, int has_append_time, int64_t append_time)
{
    while (set.at < set.end) {
        Reader message;
        const unsigned char *key, *value;
        int64_t offset, timestamp = -1;
        int32_t size, key_size, value_size;
        int admitted, kept;
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
        copy->rules.header_count = 0;
        kept = apply_rules(&copy->rules, value_size < 0);
        if (kept < 0)
            return -1;
        admitted = kept ? admit(copy, offset, timestamp) : 0;
        if (admitted < 0)
            return -1;
        if (admitted) {
            write_front(copy, timestamp,
                        number_size(key_size) + (key_size > 0 ? key_size : 0) + number_size(value_size) +
                            (value_size > 0 ? value_size : 0) + headers_size(&copy->rules));
            write_part(copy, key, key_size);
            write_part(copy, value, value_size);
            write_headers(copy);
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

static PyObject *renumber(PyObject *module, PyObject *arguments)
{
    Py_buffer body, program;
    Py_ssize_t count;
    long long base_offset, last_delta, base_timestamp, position;
    int64_t append_time;
    int has_append_time, copied = 0;
    PyObject *given_time, *skips, *result = NULL;
    Copy copy;
    if (!PyArg_ParseTuple(arguments, "y*nLLLOLOy*", &body, &count, &base_offset, &last_delta, &base_timestamp,
                          &given_time, &position, &skips, &program))
        return NULL;
    memset(&copy, 0, sizeof copy);
    if (read_time(given_time, &has_append_time, &append_time) < 0 || read_rules(&copy.rules, &program) < 0)
        goto done;
    if (count > 0 && count <= body.len / LEAST_RECORD && base_offset >= 0 && base_offset <= FURTHEST &&
        last_delta <= INT32_MAX && !is_far(base_timestamp) && !is_far(append_time)) {
        Reader records = {body.buf, (const unsigned char *)body.buf + body.len};
        if (begin(&copy, position, skips, body.len + (GROWTH + growth_by(&copy.rules)) * count) < 0)
            goto done;
        copied = copy_records(&copy, &records, count, base_offset, last_delta, base_timestamp, has_append_time,
                              append_time);
        if (copied > 0 && records.at != records.end)
            copied = 0;
    }
    if (copied > 0)
        result = finish(&copy);
    else if (copied == 0)
        result = Py_NewRef(Py_None);
done:
    release(&copy);
    PyBuffer_Release(&body);
    PyBuffer_Release(&program);
    return result;
}

/* A batch of format 2. */
typedef struct {
    const unsigned char *at, *body, *end;
    int64_t base_offset, base_timestamp, max_timestamp, producer_id;
    int32_t leader_epoch, last_offset_delta, count;
    int attributes;
} Batch;

/* Returns 1 and passes the batch if the bytes begin with a whole one. */
static int read_batch(Reader *from, Batch *batch)
{
    const unsigned char *at = from->at;
    int64_t size;
    if (from->end - at < HEADER_SIZE)
        return 0;
    size = PREFIX + (int64_t)big_endian_32(at + 8);
    if (size < HEADER_SIZE || size > from->end - at || at[16] != 2)
        return 0;
    batch->at = at;
    batch->body = at + HEADER_SIZE;
    batch->end = from->at = at + size;
    batch->base_offset = big_endian_64(at);
    batch->leader_epoch = big_endian_32(at + 12);
    batch->attributes = at[ATTRIBUTES_AT] << 8 | at[ATTRIBUTES_AT + 1];
    batch->last_offset_delta = big_endian_32(at + 23);
    batch->base_timestamp = big_endian_64(at + 27);
    batch->max_timestamp = big_endian_64(at + 35);
    batch->producer_id = big_endian_64(at + PRODUCER_AT);
    batch->count = big_endian_32(at + COUNT_AT);
    return 1;
}

/* Several buffers of bytes, each with one or more batches. */
typedef struct {
    Py_ssize_t count;
    Py_buffer *each;
} Groups;

static void release_groups(Groups *groups)
{
    while (groups->count)
        PyBuffer_Release(&groups->each[--groups->count]);
    PyMem_Free(groups->each);
}

static int read_groups(PyObject *given, Groups *groups)
{
    Py_ssize_t each, count = PySequence_Size(given);
    groups->count = 0;
    groups->each = count < 0 ? NULL : PyMem_Malloc(sizeof(Py_buffer) * (size_t)(count + 1));
    if (groups->each == NULL) {
        if (count >= 0)
            PyErr_NoMemory();
        return -1;
    }
    for (each = 0; each < count; each++) {
        PyObject *bytes = PySequence_GetItem(given, each);
        int failed = bytes == NULL || PyObject_GetBuffer(bytes, &groups->each[each], PyBUF_SIMPLE) < 0;
        Py_XDECREF(bytes);
        if (failed) {
            release_groups(groups);
            return -1;
        }
        groups->count++;
    }
    return 0;
}

static Reader reader_of(const Py_buffer *bytes)
{
    Reader reader = {bytes->buf, (const unsigned char *)bytes->buf + bytes->len};
    return reader;
}

/* Copies all batches, with offsets from 0 on. `rest` has the records of all if they were compressed. Returns as
 * copy_records. */
static int join_groups(const Groups *groups, Copy *copy, Reader *rest)
{
    Py_ssize_t each;
    for (each = 0; each < groups->count; each++) {
        Reader from = reader_of(&groups->each[each]);
        Batch batch;
        while (from.at < from.end) {
            int has_append_time, copied;
            Reader body;
            if (!read_batch(&from, &batch))
                return 0;
            has_append_time = batch.attributes & LOG_APPEND_TIME;
            body.at = batch.body;
            body.end = batch.end;
            if (is_far(batch.base_timestamp) || is_far(batch.max_timestamp))
                return 0;
            copied = copy_records(copy, rest == NULL ? &body : rest, batch.count, copy->count, batch.last_offset_delta,
                                  batch.base_timestamp, has_append_time, batch.max_timestamp);
            if (copied <= 0)
                return copied;
            if (rest == NULL && body.at != body.end)
                return 0;
        }
    }
    /* a second stretch would mean that an offset is missing */
    return (rest == NULL || rest->at == rest->end) && copy->count && !copy->stretch_first && !copy->stretch_begin;
}

/* Returns the largest size of the copy in bytes, -1 if these are no batches. `rest` is as in join_groups. */
static Py_ssize_t room_of(const Groups *groups, const Reader *rest)
{
    Py_ssize_t each, size = rest == NULL ? 0 : rest->end - rest->at, records = 0;
    for (each = 0; each < groups->count; each++) {
        Reader from = reader_of(&groups->each[each]);
        Batch batch;
        while (from.at < from.end) {
            if (!read_batch(&from, &batch) || batch.count <= 0)
                return -1;
            records += batch.count;
            if (rest == NULL)
                size += batch.end - batch.body;
            if (records > size / LEAST_RECORD)
                return -1;
        }
    }
    return size + GROWTH * records;
}

static PyObject *join(PyObject *module, PyObject *arguments)
{
    PyObject *given, *payload, *none = NULL, *result = NULL;
    Py_buffer records;
    Py_ssize_t room;
    Groups groups;
    Copy copy;
    Reader rest = {NULL, NULL}, *compressed = NULL;
    int copied = 0;
    if (!PyArg_ParseTuple(arguments, "OO", &given, &payload))
        return NULL;
    if (payload != Py_None) {
        if (PyObject_GetBuffer(payload, &records, PyBUF_SIMPLE) < 0)
            return NULL;
        rest = reader_of(&records);
        compressed = &rest;
    }
    memset(&copy, 0, sizeof copy);
    if (read_groups(given, &groups) < 0)
        goto released;
    room = room_of(&groups, compressed);
    if (room >= 0) {
        none = PyTuple_New(0);
        if (none == NULL || begin(&copy, 0, none, room) < 0)
            goto done;
        copied = join_groups(&groups, &copy, compressed);
    }
    if (copied > 0)
        result = finish(&copy);
    else if (copied == 0)
        result = Py_NewRef(Py_None);
done:
    Py_XDECREF(none);
    release(&copy);
    release_groups(&groups);
released:
    if (compressed != NULL)
        PyBuffer_Release(&records);
    return result;
}

/* Adds as Java's long does: the largest number is followed by the smallest. */
static int64_t wrapped_sum(int64_t a, int64_t b)
{
    return (int64_t)((uint64_t)a + (uint64_t)b);
}

/* Returns 1 if the object is made, 0 if Python has to decode the records, -1 if an exception is set. */
static int read_bytes(Reader *from, PyObject **made)
{
    int64_t size;
    if (!read_number(from, &size) || size < -1 || size > from->end - from->at)
        return 0;
    *made = size < 0 ? Py_NewRef(Py_None) : PyBytes_FromStringAndSize((const char *)from->at, (Py_ssize_t)size);
    if (size > 0)
        from->at += size;
    return *made == NULL ? -1 : 1;
}

static int read_header(Reader *from, PyObject **made)
{
    const char *name;
    int64_t size;
    PyObject *value = NULL;
    int status;
    if (!read_number(from, &size) || size < 0 || size > from->end - from->at)
        return 0;
    name = (const char *)from->at;
    from->at += size;
    status = read_bytes(from, &value);
    if (status <= 0)
        return status;
    *made = Py_BuildValue("(NN)", PyUnicode_DecodeUTF8(name, (Py_ssize_t)size, "surrogateescape"), value);
    return *made == NULL ? -1 : 1;
}

static int read_headers(Reader *from, PyObject **made)
{
    int64_t count, each;
    if (!read_number(from, &count) || count < 0 || count > (from->end - from->at) / LEAST_HEADER)
        return 0;
    *made = PyTuple_New((Py_ssize_t)count);
    if (*made == NULL)
        return -1;
    for (each = 0; each < count; each++) {
        PyObject *header = NULL;
        int status = read_header(from, &header);
        if (status <= 0)
            return status;
        if (PyTuple_SetItem(*made, (Py_ssize_t)each, header) < 0)
            return -1;
    }
    return 1;
}

/* Reads key, value and headers of a record. Returns as read_bytes. */
static int read_content(Reader *record, int64_t offset, int64_t timestamp, PyObject **made)
{
    PyObject *key = NULL, *value = NULL, *headers = NULL;
    int status = read_bytes(record, &key);
    if (status > 0)
        status = read_bytes(record, &value);
    if (status > 0)
        status = read_headers(record, &headers);
    if (status > 0 && record->at != record->end)
        status = 0;
    if (status > 0) {
        *made = Py_BuildValue("(LLOOO)", (long long)offset, (long long)timestamp, key, value, headers);
        status = *made == NULL ? -1 : 1;
    }
    Py_XDECREF(key);
    Py_XDECREF(value);
    Py_XDECREF(headers);
    return status;
}

static int read_record(Reader *body, int64_t base_offset, int64_t *last, int64_t last_delta, int64_t base_timestamp,
                       int has_append_time, int64_t append_time, PyObject **made)
{
    Reader record;
    int64_t length, time_delta, delta;
    if (!read_number(body, &length) || length < LEAST_RECORD - 1 || length > body->end - body->at)
        return 0;
    record.at = body->at;
    record.end = body->at += length;
    if (*record.at++ != NO_ATTRIBUTES || !read_number(&record, &time_delta) || !read_number(&record, &delta))
        return 0;
    if (delta <= *last || delta > last_delta)
        return 0;
    *last = delta;
    return read_content(&record, base_offset + delta,
                        has_append_time ? append_time : wrapped_sum(base_timestamp, time_delta), made);
}

static PyObject *read_records(PyObject *module, PyObject *arguments)
{
    Py_buffer body;
    Py_ssize_t count;
    long long base_offset, last_delta, base_timestamp;
    int64_t append_time, last = -1;
    int has_append_time, status = 0;
    PyObject *given_time, *made = NULL;
    Reader records;
    if (!PyArg_ParseTuple(arguments, "y*nLLLO", &body, &count, &base_offset, &last_delta, &base_timestamp, &given_time))
        return NULL;
    if (read_time(given_time, &has_append_time, &append_time) < 0)
        goto done;
    records = reader_of(&body);
    if (count >= 0 && count <= body.len / LEAST_RECORD && base_offset >= 0 && last_delta <= INT32_MAX &&
        base_offset <= INT64_MAX - INT32_MAX) {
        made = PyList_New(0);
        status = made == NULL ? -1 : 1;
        while (status > 0 && count--) {
            PyObject *record = NULL;
            status = read_record(&records, base_offset, &last, last_delta, base_timestamp, has_append_time, append_time,
                                 &record);
            if (status > 0 && PyList_Append(made, record) < 0)
                status = -1;
            Py_XDECREF(record);
        }
        if (status > 0 && records.at != records.end)
            status = 0;
    }
    if (status <= 0)
        Py_CLEAR(made);
    if (status == 0)
        made = Py_NewRef(Py_None);
done:
    PyBuffer_Release(&body);
    return made;
}

/* An LZ4 frame: magic, flags, size of blocks, a checksum of these; blocks; four zero bytes. */
#define FRAME_HEADER 7
#define FRAME_END 4
#define BLOCK_SIZE 0x7fffffffu  /* the highest bit says that it is not compressed */
#define ALONE 0x60              /* flags of version 1 with blocks that do not refer to earlier ones */
#define BLOCK_CHECKSUMS 0x10    /* a checksum behind each block: liblz4 writes them, Java's producer does not */

/* Skips the blocks of a frame, up to the bytes that end it, which must be the last of the body. */
static int pass_blocks(Reader *body, int has_checksums)
{
    while (body->end - body->at > FRAME_END) {
        int64_t size = 4 + (int64_t)(little_endian_32(body->at) & BLOCK_SIZE) + (has_checksums ? 4 : 0);
        if (little_endian_32(body->at) == 0 || size > body->end - body->at - FRAME_END)
            return 0;
        body->at += size;
    }
    return body->end - body->at == FRAME_END && little_endian_32(body->at) == 0;
}

/* Returns 1 if all blocks are in the frame, 0 if Python has to decompress them. */
static int join_blocks(const Groups *groups, unsigned char *frame, unsigned char **to)
{
    static const unsigned char magic[4] = {0x04, 0x22, 0x4d, 0x18};
    Py_ssize_t each;
    for (each = 0; each < groups->count; each++) {
        Reader from = reader_of(&groups->each[each]);
        Batch batch;
        while (from.at < from.end) {
            Reader body;
            if (!read_batch(&from, &batch) || batch.end - batch.body < FRAME_HEADER + FRAME_END)
                return 0;
            if (*to == frame) {
                if (memcmp(batch.body, magic, sizeof magic) || (batch.body[4] & ~BLOCK_CHECKSUMS) != ALONE)
                    return 0;
                memcpy(frame, batch.body, FRAME_HEADER);
                *to += FRAME_HEADER;
            } else if (memcmp(batch.body, frame, FRAME_HEADER))
                return 0;
            body.at = batch.body + FRAME_HEADER;
            body.end = batch.end;
            if (!pass_blocks(&body, frame[4] & BLOCK_CHECKSUMS))
                return 0;
            memcpy(*to, batch.body + FRAME_HEADER, (size_t)(body.at - batch.body - FRAME_HEADER));
            *to += body.at - batch.body - FRAME_HEADER;
        }
    }
    if (*to == frame)
        return 0;
    memset(*to, 0, FRAME_END);
    *to += FRAME_END;
    return 1;
}

static PyObject *join_frames(PyObject *module, PyObject *given)
{
    PyObject *result = NULL;
    unsigned char *frame, *to;
    Py_ssize_t each, size = FRAME_HEADER + FRAME_END;
    Groups groups;
    if (read_groups(given, &groups) < 0)
        return NULL;
    for (each = 0; each < groups.count; each++)
        size += groups.each[each].len;
    frame = to = PyMem_Malloc((size_t)size);
    if (frame == NULL)
        PyErr_NoMemory();
    else if (join_blocks(&groups, frame, &to))
        result = PyBytes_FromStringAndSize((const char *)frame, to - frame);
    else
        result = Py_NewRef(Py_None);
    PyMem_Free(frame);
    release_groups(&groups);
    return result;
}

static PyObject *translate(PyObject *module, PyObject *arguments)
{
    Py_buffer set, program;
    int magic, has_append_time, copied = 0;
    long long last_offset, position;
    int64_t append_time, shift = 0;
    PyObject *given_time, *skips, *result = NULL;
    Copy copy;
    if (!PyArg_ParseTuple(arguments, "y*iLOLOy*", &set, &magic, &last_offset, &given_time, &position, &skips,
                          &program))
        return NULL;
    memset(&copy, 0, sizeof copy);
    if (read_time(given_time, &has_append_time, &append_time) < 0 || read_rules(&copy.rules, &program) < 0)
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
        if (begin(&copy, position, skips,
                  set.len + set.len / 4 + 64 + growth_by(&copy.rules) * (set.len / LEAST_MESSAGE + 1)) < 0)
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
    PyBuffer_Release(&program);
    return result;
}

/* A CRC-32C is a polynomial over GF(2) modulo this one; the highest bit of a number is the coefficient of x^0. Each zero
 * byte behind the others multiplies it by x^8. */
#define POLYNOMIAL 0x82f63b78u
#define ONE 0x80000000u

static uint32_t crc_of[8][256]; /* the CRC of a byte with so many zero bytes behind it */
static uint32_t of_zeros[4][256]; /* the factor of so many zero bytes, times 256^index */

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
        crc_of[0][byte] = byte;
        for (bit = 0; bit < 8; bit++)
            crc_of[0][byte] = times_x(crc_of[0][byte]);
    }
    for (index = 1; index < 8; index++)
        for (byte = 0; byte < 256; byte++)
            crc_of[index][byte] = crc_of[index - 1][byte] >> 8 ^ crc_of[0][crc_of[index - 1][byte] & 0xff];
    for (index = 0; index < 4; index++) {
        of_zeros[index][0] = ONE;
        for (byte = 1; byte < 256; byte++)
            of_zeros[index][byte] = multiply(of_zeros[index][byte - 1], factor);
        factor = multiply(of_zeros[index][255], factor);
    }
}

/* Returns the CRC of bytes with so many zero bytes behind them. */
static uint32_t with_zeros(uint32_t crc, Py_ssize_t zeros)
{
    int index = 0;
    for (; zeros; zeros >>= 8, index++)
        crc = multiply(of_zeros[index & 3][zeros & 0xff], crc);
    return crc;
}

/* Continues a CRC by tables, eight bytes at a time. */
static uint32_t add_by_table(uint32_t crc, const unsigned char *at, const unsigned char *end)
{
    for (; end - at >= 8; at += 8) {
        uint32_t low = crc ^ little_endian_32(at), high = little_endian_32(at + 4);
        crc = crc_of[7][low & 0xff] ^ crc_of[6][low >> 8 & 0xff] ^ crc_of[5][low >> 16 & 0xff] ^ crc_of[4][low >> 24] ^
              crc_of[3][high & 0xff] ^ crc_of[2][high >> 8 & 0xff] ^ crc_of[1][high >> 16 & 0xff] ^
              crc_of[0][high >> 24];
    }
    while (at < end)
        crc = crc >> 8 ^ crc_of[0][(crc ^ *at++) & 0xff];
    return crc;
}

/* The processor's instruction takes three cycles, and one may begin in each cycle. So three lanes of bytes are read at a
 * time. `shifted` multiplies the CRC of a lane by the factor of the lanes behind it. */
#if defined(__x86_64__) && defined(__GNUC__)
#define HAS_INSTRUCTION __builtin_cpu_supports("sse4.2")
#define STEP(crc, word) __asm__("crc32q %1, %0" : "+r"(crc) : "rm"(word))
#elif defined(__aarch64__) && defined(__GNUC__) && (defined(__linux__) || defined(__ARM_FEATURE_CRC32))
#ifdef __ARM_FEATURE_CRC32
#define HAS_INSTRUCTION 1
#else
#include <sys/auxv.h>
#define HAS_INSTRUCTION (getauxval(AT_HWCAP) >> 7 & 1) /* HWCAP_CRC32 */
#endif
#define STEP(crc, word) __asm__(".arch_extension crc\n\tcrc32cx %w0, %w0, %x1" : "+r"(crc) : "r"(word))
#endif

#ifdef STEP
#define LANE 1024
#define SHORT_LANE 128

typedef uint32_t Shift[4][256]; /* the product of a factor with each byte of a CRC, at each of its four positions */

static Shift behind_lane, behind_short_lane;
static int has_instruction;

static void fill_shift(Shift shift, uint32_t factor)
{
    uint32_t byte, place;
    for (place = 0; place < 4; place++)
        for (byte = 0; byte < 256; byte++)
            shift[place][byte] = multiply(byte << 8 * place, factor);
}

static uint64_t shifted(Shift shift, uint64_t crc)
{
    return shift[0][crc & 0xff] ^ shift[1][crc >> 8 & 0xff] ^ shift[2][crc >> 16 & 0xff] ^ shift[3][crc >> 24 & 0xff];
}

static uint64_t word_at(const unsigned char *at)
{
    uint64_t word;
    memcpy(&word, at, sizeof word);
    return word;
}

static const unsigned char *add_lanes(uint64_t *crc, const unsigned char *at, const unsigned char *end, Shift shift,
                                      Py_ssize_t lane)
{
    for (; end - at >= 3 * lane; at += 3 * lane) {
        uint64_t first = *crc, second = 0, third = 0;
        Py_ssize_t place;
        for (place = 0; place < lane; place += 8) {
            STEP(first, word_at(at + place));
            STEP(second, word_at(at + lane + place));
            STEP(third, word_at(at + 2 * lane + place));
        }
        *crc = shifted(shift, shifted(shift, first) ^ second) ^ third;
    }
    return at;
}

static uint32_t add_by_instruction(uint32_t before, const unsigned char *at, const unsigned char *end)
{
    uint64_t crc = before;
    at = add_lanes(&crc, at, end, behind_lane, LANE);
    at = add_lanes(&crc, at, end, behind_short_lane, SHORT_LANE);
    for (; end - at >= 8; at += 8)
        STEP(crc, word_at(at));
    return add_by_table((uint32_t)crc, at, end);
}
#endif

static uint32_t add_to_crc(uint32_t crc, const unsigned char *at, const unsigned char *end)
{
#ifdef STEP
    if (has_instruction)
        return add_by_instruction(crc, at, end);
#endif
    return add_by_table(crc, at, end);
}

/* Returns the change of the CRC of bytes, if those in front of the last `zeros` ones are changed by `changes`. */
static uint32_t change_of_crc(const unsigned char *changes, Py_ssize_t size, Py_ssize_t zeros)
{
    return with_zeros(add_to_crc(0, changes, changes + size), zeros);
}

static PyObject *crc32c(PyObject *module, PyObject *const *given, Py_ssize_t count)
{
    Py_buffer bytes;
    unsigned long before = 0, crc;
    if (count < 1 || count > 2) {
        PyErr_SetString(PyExc_TypeError, "crc32c: bytes, and the CRC of those before them");
        return NULL;
    }
    if (count == 2) {
        before = PyLong_AsUnsignedLong(given[1]);
        if (PyErr_Occurred())
            return NULL;
    }
    if (PyObject_GetBuffer(given[0], &bytes, PyBUF_SIMPLE) < 0)
        return NULL;
    crc = ~add_to_crc(~(uint32_t)before, bytes.buf, (const unsigned char *)bytes.buf + bytes.len);
    PyBuffer_Release(&bytes);
    return PyLong_FromUnsignedLong(crc & 0xffffffffu);
}

/* Returns whether the batch can be in a group, behind the batch `before` it (NULL: it is the first one). */
static int joins(const Batch *batch, const Batch *before, int any_producer)
{
    if (batch->attributes & ~CODEC_MASK || batch->count <= 0 || batch->last_offset_delta != batch->count - 1)
        return 0;
    if (batch->base_offset < 0 || batch->base_offset > FURTHEST)
        return 0;
    if (batch->base_timestamp < 0 || batch->max_timestamp < batch->base_timestamp)
        return 0;
    return before == NULL ||
           (batch->attributes == before->attributes && batch->leader_epoch == before->leader_epoch &&
            batch->base_offset == before->base_offset + before->count &&
            (any_producer || batch->producer_id == before->producer_id));
}

/* Finds a group of small batches, and checks the CRC of each. */
static PyObject *gather(PyObject *module, PyObject *const *given, Py_ssize_t count)
{
    Py_buffer bytes;
    Py_ssize_t at, largest, most, batches = 0;
    int64_t records = 0, oldest = INT64_MAX, newest = 0;
    int any_producer;
    Reader from;
    Batch first = {0}, last = {0}, batch;
    PyObject *result = NULL;
    if (count != 5) {
        PyErr_SetString(PyExc_TypeError, "gather: bytes, a position, the sizes of a batch and of all, any producer or one");
        return NULL;
    }
    if (PyObject_GetBuffer(given[0], &bytes, PyBUF_SIMPLE) < 0)
        return NULL;
    at = PyLong_AsSsize_t(given[1]);
    largest = PyLong_AsSsize_t(given[2]);
    most = PyLong_AsSsize_t(given[3]);
    any_producer = PyObject_IsTrue(given[4]);
    if (PyErr_Occurred())
        goto done;
    if (at < 0 || at > bytes.len) {
        PyErr_SetString(PyExc_ValueError, "gather: the position is not in the bytes");
        goto done;
    }
    from = reader_of(&bytes);
    from.at += at;
    while (read_batch(&from, &batch)) {
        Py_ssize_t size = batch.end - batch.at;
        if (size > largest || (batches && batch.end - first.at > most))
            break;
        if (!joins(&batch, batches ? &last : NULL, any_producer) || records + batch.count > INT32_MAX)
            break;
        if (~add_to_crc(~0u, batch.at + ATTRIBUTES_AT, batch.end) != (uint32_t)big_endian_32(batch.at + CRC_AT))
            break;
        if (!batches++)
            first = batch;
        if (batch.base_timestamp < oldest)
            oldest = batch.base_timestamp;
        if (batch.max_timestamp > newest)
            newest = batch.max_timestamp;
        records += batch.count;
        last = batch;
    }
    if (batches < 2)
        result = Py_NewRef(Py_None);
    else
        result = Py_BuildValue("nLiiiiiLLLiiin", (Py_ssize_t)(last.end - (const unsigned char *)bytes.buf),
                               (long long)first.base_offset, first.leader_epoch, 2, 0, first.attributes,
                               (int)(records - 1), (long long)oldest, (long long)newest, (long long)first.producer_id, -1,
                               -1, (int)records, batches);
done:
    PyBuffer_Release(&bytes);
    return result;
}

static void write_big_endian(unsigned char *to, int size, uint64_t value)
{
    for (; size--; value >>= 8)
        to[size] = (unsigned char)value;
}

/* Makes the header without reading the records: their part in the CRC does not change. */
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

/* Bytes of the rows of an Arrow column: a bit for each row that has some, the index behind those of each, and all bytes.
 * Without `ends_at` they are only counted. */
typedef struct {
    PyObject *valid, *ends, *data;
    unsigned char *valid_at, *data_at;
    int32_t *ends_at;
    int64_t rows, size;
} BytesColumn;

typedef struct {
    PyObject *offsets, *timestamps, *types, *headers_valid, *headers_ends;
    int64_t *offsets_at, *timestamps_at;
    int32_t *types_at, *headers_ends_at;
    unsigned char *headers_valid_at;
    int64_t rows, start, last;
    int has_other_names; /* a header's name has more than ASCII */
    BytesColumn key, value, blocks, names, header_values;
} Columns;

/* The uncompressed records of a batch of format 2. */
typedef struct {
    Py_buffer body;
    Py_ssize_t count;
    int64_t base_offset, last_delta, base_timestamp, append_time;
    int has_append_time;
} Unpacked;

/* Reads bytes with their length in front; a size of -1 means none. */
static int read_sized(Reader *from, const unsigned char **bytes, int64_t *size)
{
    if (!read_number(from, size) || *size < -1 || *size > from->end - from->at)
        return 0;
    *bytes = from->at;
    if (*size > 0)
        from->at += *size;
    return 1;
}

static void add_bytes(BytesColumn *column, const unsigned char *bytes, int64_t size)
{
    if (column->ends_at != NULL) {
        if (size > 0)
            memcpy(column->data_at + column->size, bytes, (size_t)size);
        if (size >= 0)
            column->valid_at[column->rows >> 3] |= (unsigned char)(1 << (column->rows & 7));
        column->ends_at[column->rows + 1] = (int32_t)(column->size + (size > 0 ? size : 0));
    }
    column->rows++;
    if (size > 0)
        column->size += size;
}

/* Reads the headers of a record, and adds them to the columns if they are wanted. */
static int add_headers(Columns *columns, Reader *from, int is_wanted)
{
    int64_t count, each, byte;
    if (!read_number(from, &count) || count < 0)
        return 0;
    for (each = 0; each < count; each++) {
        const unsigned char *name, *value;
        int64_t name_size, value_size;
        if (!read_sized(from, &name, &name_size) || name_size < 0 || !read_sized(from, &value, &value_size))
            return 0;
        if (!is_wanted)
            continue;
        for (byte = 0; byte < name_size; byte++)
            columns->has_other_names |= name[byte] & 0x80;
        add_bytes(&columns->names, name, name_size);
        add_bytes(&columns->header_values, value, value_size);
    }
    if (is_wanted && columns->offsets_at != NULL && count)
        columns->headers_valid_at[columns->rows >> 3] |= (unsigned char)(1 << (columns->rows & 7));
    return 1;
}

/* Returns 1 if the records are in the columns, 0 if Python has to decode them. */
static int add_records(Columns *columns, const Unpacked *batch)
{
    Reader body = reader_of(&batch->body);
    Py_ssize_t count = batch->count;
    while (count--) {
        Reader record;
        const unsigned char *key, *value, *block;
        int64_t length, delta, timestamp, offset, key_size, value_size;
        int is_wanted;
        if (!read_number(&body, &length) || length < LEAST_RECORD - 1 || length > body.end - body.at)
            return 0;
        record.at = body.at;
        record.end = body.at += length;
        if (*record.at++ != NO_ATTRIBUTES)
            return 0;
        if (!read_number(&record, &delta) || delta > FURTHEST || delta < -FURTHEST)
            return 0;
        timestamp = batch->has_append_time ? batch->append_time : batch->base_timestamp + delta;
        if (!read_number(&record, &delta) || delta < 0 || delta > batch->last_delta)
            return 0;
        offset = batch->base_offset + delta;
        if (offset <= columns->last)
            return 0;
        columns->last = offset;
        is_wanted = offset >= columns->start;
        if (!read_sized(&record, &key, &key_size) || !read_sized(&record, &value, &value_size))
            return 0;
        block = record.at;
        if (!add_headers(columns, &record, is_wanted) || record.at != record.end)
            return 0;
        if (!is_wanted)
            continue;
        add_bytes(&columns->key, key, key_size);
        add_bytes(&columns->value, value, value_size);
        add_bytes(&columns->blocks, block, record.end - block);
        if (columns->offsets_at != NULL) {
            columns->offsets_at[columns->rows] = offset;
            columns->timestamps_at[columns->rows] = timestamp;
            columns->types_at[columns->rows] = batch->has_append_time ? 1 : 0;
            columns->headers_ends_at[columns->rows + 1] = (int32_t)columns->names.rows;
        }
        columns->rows++;
    }
    return body.at == body.end;
}

static int add_batches(Columns *columns, const Unpacked *batches, Py_ssize_t count)
{
    Py_ssize_t each;
    columns->rows = 0;
    columns->last = -1;
    for (each = 0; each < count; each++)
        if (!add_records(columns, &batches[each]))
            return 0;
    return 1;
}

/* Makes a bytes object that is filled later. Returns its first byte, NULL if an exception is set. */
static void *new_buffer(PyObject **made, int64_t size)
{
    char *at;
    *made = PyBytes_FromStringAndSize(NULL, (Py_ssize_t)size);
    if (*made == NULL)
        return NULL;
    at = PyBytes_AsString(*made);
    if (at != NULL)
        memset(at, 0, (size_t)size);
    return at;
}

static int is_large(const BytesColumn *column)
{
    return column->size > INT32_MAX || column->rows > INT32_MAX - 1;
}

/* Makes the buffers of a column that was counted. */
static int prepare_column(BytesColumn *column)
{
    column->valid_at = new_buffer(&column->valid, (column->rows + 7) / 8);
    column->data_at = column->valid_at == NULL ? NULL : new_buffer(&column->data, column->size);
    column->ends_at = column->data_at == NULL ? NULL : new_buffer(&column->ends, 4 * (column->rows + 1));
    column->rows = column->size = 0;
    return column->ends_at == NULL ? -1 : 0;
}

static int prepare_columns(Columns *columns)
{
    int64_t rows = columns->rows;
    if (is_large(&columns->key) || is_large(&columns->value) || is_large(&columns->blocks) ||
        is_large(&columns->names) || is_large(&columns->header_values)) {
        PyErr_SetString(PyExc_OverflowError, "read_columns: more than 2 GiB in one column");
        return -1;
    }
    if ((columns->timestamps_at = new_buffer(&columns->timestamps, 8 * rows)) == NULL ||
        (columns->types_at = new_buffer(&columns->types, 4 * rows)) == NULL ||
        (columns->headers_valid_at = new_buffer(&columns->headers_valid, (rows + 7) / 8)) == NULL ||
        (columns->headers_ends_at = new_buffer(&columns->headers_ends, 4 * (rows + 1))) == NULL ||
        (columns->offsets_at = new_buffer(&columns->offsets, 8 * rows)) == NULL)
        return -1;
    return prepare_column(&columns->key) < 0 || prepare_column(&columns->value) < 0 ||
                   prepare_column(&columns->blocks) < 0 || prepare_column(&columns->names) < 0 ||
                   prepare_column(&columns->header_values) < 0
               ? -1
               : 0;
}

static void release_column(BytesColumn *column)
{
    Py_XDECREF(column->valid);
    Py_XDECREF(column->ends);
    Py_XDECREF(column->data);
}

static void release_columns(Columns *columns)
{
    Py_XDECREF(columns->offsets);
    Py_XDECREF(columns->timestamps);
    Py_XDECREF(columns->types);
    Py_XDECREF(columns->headers_valid);
    Py_XDECREF(columns->headers_ends);
    release_column(&columns->key);
    release_column(&columns->value);
    release_column(&columns->blocks);
    release_column(&columns->names);
    release_column(&columns->header_values);
}

static void release_unpacked(Unpacked *batches, Py_ssize_t count)
{
    while (count)
        PyBuffer_Release(&batches[--count].body);
    PyMem_Free(batches);
}

/* Returns 1 if the batch is read, 0 if Python has to decode it, -1 if an exception is set. */
static int read_unpacked(PyObject *given, Unpacked *batch)
{
    long long base_offset, last_delta, base_timestamp;
    PyObject *given_time;
    if (!PyArg_ParseTuple(given, "y*nLLLO", &batch->body, &batch->count, &base_offset, &last_delta, &base_timestamp,
                          &given_time))
        return -1;
    if (read_time(given_time, &batch->has_append_time, &batch->append_time) < 0) {
        PyBuffer_Release(&batch->body);
        return -1;
    }
    batch->base_offset = base_offset;
    batch->last_delta = last_delta;
    batch->base_timestamp = base_timestamp;
    return batch->count >= 0 && batch->count <= batch->body.len / LEAST_RECORD && base_offset >= 0 &&
           base_offset <= FURTHEST && last_delta <= INT32_MAX && !is_far(base_timestamp) && !is_far(batch->append_time);
}

static PyObject *columns_made(const Columns *of)
{
    return Py_BuildValue("(nOOO(OOO)(OOO)(OO)(OO)(OO)(OOO)i)", (Py_ssize_t)of->rows, of->offsets, of->timestamps, of->types,
                         of->key.valid, of->key.ends, of->key.data, of->value.valid, of->value.ends, of->value.data,
                         of->blocks.ends, of->blocks.data, of->headers_valid, of->headers_ends, of->names.ends,
                         of->names.data, of->header_values.valid, of->header_values.ends, of->header_values.data,
                         of->has_other_names ? 1 : 0);
}

static PyObject *read_columns(PyObject *module, PyObject *arguments)
{
    PyObject *given, *result = NULL;
    Py_ssize_t each, count, read_count = 0;
    long long start;
    int status = 1;
    Unpacked *batches;
    Columns columns;
    if (!PyArg_ParseTuple(arguments, "OL", &given, &start))
        return NULL;
    count = PySequence_Size(given);
    if (count < 0)
        return NULL;
    batches = PyMem_Malloc(sizeof(Unpacked) * (size_t)(count + 1));
    if (batches == NULL)
        return PyErr_NoMemory();
    memset(&columns, 0, sizeof columns);
    columns.start = start;
    for (each = 0; each < count && status > 0; each++) {
        PyObject *batch = PySequence_GetItem(given, each);
        status = batch == NULL ? -1 : read_unpacked(batch, &batches[each]);
        if (status >= 0)
            read_count++;
        Py_XDECREF(batch);
    }
    if (status > 0) {
        Py_BEGIN_ALLOW_THREADS
        status = add_batches(&columns, batches, count);
        Py_END_ALLOW_THREADS
    }
    if (status > 0 && prepare_columns(&columns) < 0)
        status = -1;
    if (status > 0) {
        Py_BEGIN_ALLOW_THREADS
        status = add_batches(&columns, batches, count);
        Py_END_ALLOW_THREADS
    }
    if (status > 0)
        result = columns_made(&columns);
    else if (status == 0)
        result = Py_NewRef(Py_None);
    release_columns(&columns);
    release_unpacked(batches, read_count);
    return result;
}

/* A column as it is given: its rows begin at the index `first` of its buffers. */
typedef struct {
    Py_buffer valid, ends, data;
    int64_t first;
    int has_valid, is_wide;
} GivenColumn;

typedef struct {
    Py_buffer valid, ends;
    int64_t first;
    int has_valid;
    GivenColumn names, values;
} GivenHeaders;

typedef struct {
    Py_buffer rows, timestamps, own_headers;
    int64_t count, room;
    GivenColumn key, value, blocks;
    int is_own_key, is_own_value, has_headers, has_own_headers;
    GivenHeaders headers;
    int64_t newest, oldest, base;
} Rows;

static int read_valid(PyObject *given, Py_buffer *valid, int *has_valid)
{
    *has_valid = given != Py_None;
    return *has_valid ? PyObject_GetBuffer(given, valid, PyBUF_SIMPLE) : 0;
}

static int read_given(PyObject *given, GivenColumn *column)
{
    PyObject *valid;
    Py_ssize_t first;
    if (!PyArg_ParseTuple(given, "Oy*y*np", &valid, &column->ends, &column->data, &first, &column->is_wide))
        return -1;
    column->first = first;
    return read_valid(valid, &column->valid, &column->has_valid);
}

static int read_given_headers(PyObject *given, GivenHeaders *headers)
{
    PyObject *valid, *names, *values;
    Py_ssize_t first;
    if (!PyArg_ParseTuple(given, "Oy*OOn", &valid, &headers->ends, &names, &values, &first))
        return -1;
    headers->first = first;
    return read_valid(valid, &headers->valid, &headers->has_valid) < 0 || read_given(names, &headers->names) < 0 ||
                   read_given(values, &headers->values) < 0
               ? -1
               : 0;
}

/* A buffer that was never filled has no object, and is left alone. */
static void release_given(GivenColumn *column)
{
    PyBuffer_Release(&column->valid);
    PyBuffer_Release(&column->ends);
    PyBuffer_Release(&column->data);
}

static void release_rows(Rows *rows)
{
    PyBuffer_Release(&rows->rows);
    PyBuffer_Release(&rows->timestamps);
    PyBuffer_Release(&rows->own_headers);
    release_given(&rows->key);
    release_given(&rows->value);
    release_given(&rows->blocks);
    PyBuffer_Release(&rows->headers.valid);
    PyBuffer_Release(&rows->headers.ends);
    release_given(&rows->headers.names);
    release_given(&rows->headers.values);
}

/* Returns whether the row is in the bits, and sets `is_set`. Without bits each row is valid. */
static int read_bit(const Py_buffer *bits, int has_bits, int64_t index, int *is_set)
{
    *is_set = 1;
    if (!has_bits)
        return 1;
    if (index < 0 || index >> 3 >= bits->len)
        return 0;
    *is_set = ((const unsigned char *)bits->buf)[index >> 3] >> (index & 7) & 1;
    return 1;
}

/* Reads the index behind a row and the one in front of it. */
static int read_ends(const Py_buffer *ends, int is_wide, int64_t index, int64_t *from, int64_t *to)
{
    const char *at = ends->buf;
    if (index < 0 || index > ends->len / (is_wide ? 8 : 4) - 2)
        return 0;
    if (is_wide) {
        memcpy(from, at + 8 * index, 8);
        memcpy(to, at + 8 * index + 8, 8);
    } else {
        int32_t both[2];
        memcpy(both, at + 4 * index, sizeof both);
        *from = both[0];
        *to = both[1];
    }
    return 0 <= *from && *from <= *to;
}

/* Finds the bytes of a row; a size of -1 means none. Returns 0 if its buffers do not fit together. */
static int given_bytes(const GivenColumn *column, int64_t row, const unsigned char **bytes, int64_t *size)
{
    int64_t index = column->first + row, from, to;
    int is_set;
    *size = -1;
    if (row < 0 || !read_bit(&column->valid, column->has_valid, index, &is_set))
        return 0;
    if (!is_set)
        return 1;
    if (!read_ends(&column->ends, column->is_wide, index, &from, &to) || to > column->data.len)
        return 0;
    *bytes = (const unsigned char *)column->data.buf + from;
    *size = to - from;
    return *size <= INT32_MAX;
}

static int64_t size_of_sized(int64_t size)
{
    return number_size(size) + (size > 0 ? size : 0);
}

static unsigned char *write_sized(unsigned char *to, const unsigned char *bytes, int64_t size)
{
    to = write_number(to, size);
    if (size > 0) {
        memcpy(to, bytes, (size_t)size);
        to += size;
    }
    return to;
}

/* Finds the headers of a row in the list column. */
static int headers_between(const GivenHeaders *headers, int64_t row, int64_t *from, int64_t *to)
{
    int is_set;
    *from = *to = 0;
    if (!read_bit(&headers->valid, headers->has_valid, headers->first + row, &is_set))
        return 0;
    return !is_set || read_ends(&headers->ends, 0, headers->first + row, from, to);
}

/* Counts the bytes of the headers of a row, and writes them if there is a place. Returns -1 if the buffers do not fit. */
static int64_t put_headers(const Rows *rows, int64_t row, int64_t source, unsigned char **to)
{
    int64_t from, end, each, size;
    if (!rows->has_headers || (rows->has_own_headers && ((const unsigned char *)rows->own_headers.buf)[row])) {
        const unsigned char *block;
        if (!given_bytes(&rows->blocks, source, &block, &size) || size < 1)
            return -1;
        if (to != NULL) {
            memcpy(*to, block, (size_t)size);
            *to += size;
        }
        return size;
    }
    if (!headers_between(&rows->headers, row, &from, &end))
        return -1;
    size = number_size(end - from);
    if (to != NULL)
        *to = write_number(*to, end - from);
    for (each = from; each < end; each++) {
        const unsigned char *name, *value;
        int64_t name_size, value_size;
        if (!given_bytes(&rows->headers.names, each, &name, &name_size) || name_size < 0 ||
            !given_bytes(&rows->headers.values, each, &value, &value_size))
            return -1;
        size += size_of_sized(name_size) + size_of_sized(value_size);
        if (to != NULL)
            *to = write_sized(write_sized(*to, name, name_size), value, value_size);
    }
    return size;
}

static int64_t timestamp_of(const Rows *rows, int64_t row)
{
    int64_t timestamp;
    memcpy(&timestamp, (const char *)rows->timestamps.buf + 8 * row, 8);
    return timestamp;
}

/* Subtracts as Java's long does. */
static int64_t wrapped_difference(int64_t a, int64_t b)
{
    return (int64_t)((uint64_t)a - (uint64_t)b);
}

/* Counts the bytes of all rows, and writes them if there is a place. Returns 0 if the buffers do not fit together. */
static int put_rows(Rows *rows, unsigned char *to)
{
    int64_t row;
    rows->room = 0;
    for (row = 0; row < rows->count; row++) {
        const unsigned char *key, *value;
        int64_t key_size, value_size, headers_size, size, delta, timestamp = timestamp_of(rows, row);
        int32_t source;
        memcpy(&source, (const char *)rows->rows.buf + 4 * row, 4);
        if (row == 0)
            rows->base = rows->newest = rows->oldest = timestamp;
        if (timestamp > rows->newest)
            rows->newest = timestamp;
        if (timestamp < rows->oldest)
            rows->oldest = timestamp;
        delta = wrapped_difference(timestamp, rows->base);
        headers_size = put_headers(rows, row, source, NULL);
        if (headers_size < 0 || !given_bytes(&rows->key, rows->is_own_key ? source : row, &key, &key_size) ||
            !given_bytes(&rows->value, rows->is_own_value ? source : row, &value, &value_size))
            return 0;
        size = 1 + number_size(delta) + number_size(row) + size_of_sized(key_size) + size_of_sized(value_size) +
               headers_size;
        rows->room += number_size(size) + size;
        if (rows->room > INT32_MAX)
            return 0;
        if (to != NULL) {
            to = write_number(to, size);
            *to++ = NO_ATTRIBUTES;
            to = write_number(write_number(to, delta), row);
            to = write_sized(write_sized(to, key, key_size), value, value_size);
            put_headers(rows, row, source, &to);
        }
    }
    return 1;
}

static int read_rows(PyObject *arguments, Rows *rows)
{
    PyObject *key, *value, *blocks, *headers, *own;
    if (!PyArg_ParseTuple(arguments, "y*y*OpOpOOO", &rows->rows, &rows->timestamps, &key, &rows->is_own_key, &value,
                          &rows->is_own_value, &blocks, &headers, &own))
        return -1;
    rows->count = rows->rows.len / 4;
    rows->has_headers = headers != Py_None;
    if (read_given(key, &rows->key) < 0 || read_given(value, &rows->value) < 0 ||
        read_given(blocks, &rows->blocks) < 0 || read_valid(own, &rows->own_headers, &rows->has_own_headers) < 0 ||
        (rows->has_headers && read_given_headers(headers, &rows->headers) < 0))
        return -1;
    if (rows->timestamps.len < 8 * rows->count || (rows->has_own_headers && rows->own_headers.len < rows->count)) {
        PyErr_SetString(PyExc_ValueError, "write_rows: fewer timestamps, or marks of own headers, than rows");
        return -1;
    }
    return 0;
}

static PyObject *write_rows(PyObject *module, PyObject *arguments)
{
    PyObject *records = NULL, *result = NULL;
    unsigned char *to = NULL;
    int fits = 0;
    Rows rows;
    memset(&rows, 0, sizeof rows);
    if (read_rows(arguments, &rows) < 0)
        goto done;
    Py_BEGIN_ALLOW_THREADS
    fits = put_rows(&rows, NULL);
    Py_END_ALLOW_THREADS
    if (fits) {
        to = new_buffer(&records, rows.room);
        if (to == NULL)
            goto done;
        Py_BEGIN_ALLOW_THREADS
        fits = put_rows(&rows, to);
        Py_END_ALLOW_THREADS
    }
    if (fits)
        result = Py_BuildValue("(OLLL)", records, (long long)rows.newest, (long long)rows.oldest, (long long)rows.base);
    else
        PyErr_SetString(PyExc_ValueError, "write_rows: the buffers of a column do not fit together");
done:
    Py_XDECREF(records);
    release_rows(&rows);
    return result;
}

/* Finds the row of each wanted offset. Returns None if they do not ascend, or one is not among the offsets. */
static PyObject *match_rows(PyObject *module, PyObject *arguments)
{
    Py_buffer offsets, wanted;
    Py_ssize_t row = 0, each, rows, count;
    PyObject *result = NULL;
    char *to;
    if (!PyArg_ParseTuple(arguments, "y*y*", &offsets, &wanted))
        return NULL;
    rows = offsets.len / 8;
    count = wanted.len / 8;
    to = new_buffer(&result, 4 * count);
    for (each = 0; to != NULL && each < count; each++, row++) {
        int32_t index;
        while (row < rows && memcmp((const char *)offsets.buf + 8 * row, (const char *)wanted.buf + 8 * each, 8))
            row++;
        if (row == rows) {
            Py_DECREF(result);
            result = Py_NewRef(Py_None);
            break;
        }
        index = (int32_t)row;
        memcpy(to + 4 * each, &index, 4);
    }
    PyBuffer_Release(&offsets);
    PyBuffer_Release(&wanted);
    return result;
}

static PyMethodDef methods[] = {
    {"stamp", (PyCFunction)(void (*)(void))stamp, METH_FASTCALL,
     "stamp(batch, producer_id, producer_epoch, base_sequence, transactional): the header of a batch with a right CRC."},
    {"crc32c", (PyCFunction)(void (*)(void))crc32c, METH_FASTCALL,
     "crc32c(bytes, before=0): the CRC-32C of bytes, behind those whose CRC is `before`."},
    {"gather", (PyCFunction)(void (*)(void))gather, METH_FASTCALL,
     "gather(bytes, at, largest, most, any_producer): the end and the header of small batches that follow each other."},
    {"join_frames", join_frames, METH_O, "join_frames(groups): one LZ4 frame with the blocks of all batches."},
    {"join", join, METH_VARARGS, "join(groups, records): records of format 2, of several batches."},
    {"read_columns", read_columns, METH_VARARGS,
     "read_columns(batches, start): the buffers of Arrow columns, a row for each record of format 2."},
    {"write_rows", write_rows, METH_VARARGS,
     "write_rows(rows, timestamps, key, is_own_key, value, is_own_value, blocks, headers, own_headers): records."},
    {"match_rows", match_rows, METH_VARARGS, "match_rows(offsets, wanted): the row of each wanted offset."},
    {"read", read_records, METH_VARARGS,
     "read(records, count, base_offset, last_delta, base_timestamp, append_time): a tuple for each of format 2."},
    {"renumber", renumber, METH_VARARGS,
     "renumber(records, count, base_offset, last_delta, base_timestamp, append_time, position, skips, rules): those of "
     "format 2."},
    {"translate", translate, METH_VARARGS,
     "translate(messages, magic, last_offset, append_time, position, skips, rules): messages of format 0 or 1."},
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
#ifdef STEP
    has_instruction = HAS_INSTRUCTION;
    fill_shift(behind_lane, with_zeros(ONE, LANE));
    fill_shift(behind_short_lane, with_zeros(ONE, SHORT_LANE));
#endif
    return PyModuleDef_Init(&definition);
}
