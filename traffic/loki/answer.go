package loki

import (
	"fmt"
	"strings"
)

// notLogs is an answer that holds something else than log entries, by name.
type notLogs string

// Error implements error.
func (n notLogs) Error() string {
	return fmt.Sprintf("the answer holds a %s, not log lines", printable(string(n), 40))
}

// said is an error that the server put into an answer of status 200.
type said string

// Error implements error.
func (s said) Error() string { return string(s) }

// decoder turns answers into pages. It holds no more than the page.
type decoder struct {
	scanner
	page *page
	tmp  []byte // a time
}

// queryRange reads one answer of Loki's query_range. What was read before a failure is in the page.
func (d *decoder) queryRange() error {
	var data bool
	var kind, trouble string
	ok := d.object(func(key []byte) bool {
		switch string(key) {
		case "data":
			data = true
			if c, ok := d.peek(); !ok || c != '{' {
				return ok && d.skip() && d.fail(malformed("the answer holds no log entries"))
			}
			return d.data()
		case "status":
			return d.word64(&kind)
		case "error":
			return d.words(&trouble)
		}
		return d.skip()
	})
	switch {
	case !ok:
		return d.err
	case kind == "error" || trouble != "":
		return said(trouble)
	case !data:
		return malformed("the answer is not one of Loki's: it holds no data")
	}
	return nil
}

// object reads an object, each of whose members is read by the function.
func (d *decoder) object(member func(key []byte) bool) bool {
	if !d.take('{') {
		return false
	}
	for first := true; ; first = false {
		done, ok := d.more('}', first)
		if done || !ok {
			return ok
		}
		key, ok := d.name()
		if !ok || !member(key) {
			return false
		}
	}
}

// list reads a list, each of whose elements is read by the function.
func (d *decoder) list(element func() bool) bool {
	if !d.take('[') {
		return false
	}
	for first := true; ; first = false {
		done, ok := d.more(']', first)
		if done || !ok {
			return ok
		}
		if !element() {
			return false
		}
	}
}

// word64 reads a short string, or passes over something else.
func (d *decoder) word64(into *string) bool { return d.bounded(into, 64) }

// words reads a message of the server.
func (d *decoder) words(into *string) bool { return d.bounded(into, 4<<10) }

func (d *decoder) bounded(into *string, limit int) bool {
	if c, ok := d.peek(); !ok || c != '"' {
		return ok && d.skip()
	}
	var ok bool
	d.tmp, _, ok = d.text(d.tmp[:0], limit)
	*into = string(d.tmp)
	return ok
}

// data reads the member of that name.
func (d *decoder) data() bool {
	return d.object(func(key []byte) bool {
		switch string(key) {
		case "resultType":
			var kind string
			if !d.word64(&kind) {
				return false
			}
			return kind == "streams" || d.fail(notLogs(kind))
		case "result":
			if c, ok := d.peek(); !ok || c != '[' {
				return ok && d.skip()
			}
			return d.list(d.stream)
		}
		return d.skip()
	})
}

// stream reads the entries of one stream; its labels are of no use here.
func (d *decoder) stream() bool {
	if c, ok := d.peek(); !ok || c != '{' {
		return ok && d.skip() && d.fail(notLogs("scalar"))
	}
	return d.object(func(key []byte) bool {
		switch string(key) {
		case "metric":
			return d.fail(notLogs("matrix"))
		case "values":
			if c, ok := d.peek(); !ok || c != '[' {
				return ok && d.skip()
			}
			return d.list(d.value)
		}
		return d.skip()
	})
}

// value reads one entry: its time, its line, and what may follow, such as structured metadata.
func (d *decoder) value() bool {
	if !d.take('[') {
		return false
	}
	if c, ok := d.peek(); !ok || c != '"' {
		return ok && d.fail(notLogs("matrix"))
	}
	var ok, long bool
	if d.tmp, _, ok = d.text(d.tmp[:0], 32); !ok {
		return false
	}
	at, whole := nanoseconds(d.tmp)
	if !whole {
		return d.fail(malformed("the time of an entry is not a number of nanoseconds"))
	}
	if !d.take(',') {
		return false
	}
	off := len(d.page.data)
	if d.page.data, long, ok = d.text(d.page.data, maxLine); !ok {
		return false
	}
	for {
		done, ok := d.more(']', false)
		switch {
		case !ok:
			d.page.data = d.page.data[:off]
			return false
		case done:
			return d.page.add(at, off, long) || d.fail(errTooLarge)
		case !d.skip():
			d.page.data = d.page.data[:off]
			return false
		}
	}
}

// rows reads an answer of VictoriaLogs: one JSON object after another, to the end.
func (d *decoder) rows() error {
	for !d.end() {
		if !d.row("_msg", "_time") {
			return d.err
		}
	}
	return d.err
}

// row reads one object as an entry, whose line and time are the members of these names.
func (d *decoder) row(text, when string) bool {
	off := len(d.page.data)
	var at int64
	var timed, worded, long bool
	if !d.take('{') {
		return false
	}
	for first := true; ; first = false {
		done, ok := d.more('}', first)
		if !ok {
			break
		}
		if done {
			return d.close(at, off, timed, worded, long)
		}
		key, ok := d.name()
		if !ok {
			break
		}
		c, ok := d.peek()
		switch {
		case !ok:
		case c == '"' && string(key) == text && !worded:
			worded = true
			d.page.data, long, ok = d.text(d.page.data, maxLine)
		case c == '"' && string(key) == when:
			if d.tmp, _, ok = d.text(d.tmp[:0], 64); ok {
				at, timed = instant(d.tmp)
			}
		default:
			ok = d.skip()
		}
		if !ok {
			break
		}
	}
	d.page.data = d.page.data[:off]
	return false
}

// close ends a row.
func (d *decoder) close(at int64, off int, timed, worded, long bool) bool {
	if !timed {
		d.page.data = d.page.data[:off]
		return d.fail(notLogs("row without a time"))
	}
	fits := d.page.add(at, off, long)
	if !worded {
		d.page.list[len(d.page.list)-1].fault = faultNoText
	}
	return fits || d.fail(errTooLarge)
}

// printable is a text of somebody else's, fit to be shown: on one line, without control characters,
// cut to a number of bytes.
func printable(text string, limit int) string {
	clean := strings.Join(strings.FieldsFunc(strings.ToValidUTF8(text, "?"), func(r rune) bool {
		return r <= ' ' || r >= 0x7f && r < 0xa0 || r == '\u2028' || r == '\u2029' || r >= 0x202a && r <= 0x202e ||
			r >= 0x2066 && r <= 0x2069
	}), " ")
	if len(clean) <= limit {
		return clean
	}
	for limit > 0 && clean[limit]&0xc0 == 0x80 {
		limit--
	}
	return clean[:limit] + "..."
}
