package loki

import (
	"bytes"
	"errors"

	"seatrial/fault"
	"seatrial/traffic/input"
)

// Format is a form in which log entries are saved.
type Format uint8

// The forms. Raw output of logcli is nothing but the lines, so it is not recognised: it is what it is.
const (
	Unknown    Format = iota
	Raw               // logcli -o raw
	Default           // logcli -o default: time, labels, line
	JSONL             // logcli -o jsonl
	QueryRange        // answers of Loki's query_range
	Rows              // answers of VictoriaLogs
)

// String names the form.
func (f Format) String() string {
	switch f {
	case Raw:
		return "logcli raw"
	case Default:
		return "logcli default"
	case JSONL:
		return "logcli jsonl"
	case QueryRange:
		return "loki query_range"
	case Rows:
		return "victorialogs"
	}
	return "unknown"
}

// Recognise tells from its first bytes in which form an input holds log entries; Unknown where it is
// none of those that differ from plain lines. Some kilobytes are enough.
func Recognise(head []byte) Format {
	head = bytes.TrimLeft(head, " \t\r\n\xef\xbb\xbf")
	switch head = skipNotes(head); {
	case len(head) > 0 && head[0] == '{':
		return recogniseJSON(head)
	case isDefault(head):
		return Default
	}
	return Unknown
}

// skipNotes passes over what logcli says of itself when its two outputs went into one file.
func skipNotes(head []byte) []byte {
	for {
		line, rest, found := bytes.Cut(head, []byte{'\n'})
		if !found || !isNote(line) {
			return head
		}
		head = rest
	}
}

// isNote knows the lines that logcli writes beside the entries: the URL, and the labels that all
// entries share.
func isNote(line []byte) bool {
	// 2026/12/01 03:21:21 http://...
	if len(line) < 21 || line[4] != '/' || line[7] != '/' || line[10] != ' ' || line[13] != ':' || line[16] != ':' {
		return false
	}
	rest := line[20:]
	return bytes.HasPrefix(rest, []byte("http://")) || bytes.HasPrefix(rest, []byte("https://")) ||
		bytes.HasPrefix(rest, []byte("Common labels: "))
}

// isDefault knows a line that begins with a time and labels.
func isDefault(head []byte) bool {
	line, _, _ := bytes.Cut(head, []byte{'\n'})
	var plain []byte
	line = uncolour(line, &plain)
	_, labels, ok := cutTime(line)
	if !ok {
		return false
	}
	_, ok = cutLabels(labels)
	return ok
}

// recogniseJSON looks at the first keys of an object.
func recogniseJSON(head []byte) Format {
	var s scanner
	s.reset(nil, head)
	if !s.take('{') {
		return Unknown
	}
	var line, labels, stamp, text, when bool
	for first := true; ; first = false {
		done, ok := s.more('}', first)
		if done || !ok {
			break
		}
		key, ok := s.name()
		if !ok {
			break
		}
		switch string(key) {
		case "line":
			line = true
		case "labels":
			labels = true
		case "timestamp":
			stamp = true
		case "_msg", "_stream", "_stream_id":
			text = true
		case "_time":
			when = true
		case "data":
			if isStreams(&s) {
				return QueryRange
			}
		}
		if s.err != nil || !s.skip() {
			break
		}
	}
	switch {
	case line && stamp, labels && (line || stamp || s.err != nil):
		return JSONL
	case text && when, text && s.err != nil:
		return Rows
	}
	return Unknown
}

// isStreams tells whether the value that follows is what query_range answers, without consuming it.
func isStreams(s *scanner) bool {
	if c, ok := s.peek(); !ok || c != '{' {
		return false
	}
	head := s.buf[s.r:s.w]
	return bytes.Contains(head[:min(len(head), 256)], []byte(`"resultType"`))
}

// Saved gives the lines of saved log entries, in the order of the inputs. It is used by one goroutine.
type Saved struct {
	set    *input.Set
	format Format
	next   func() bool
	lines  *input.Lines
	number int64

	page    page // QueryRange: the entries of one answer; else the current one
	at      int
	decoder decoder
	open    bool
	trouble string // that an input ended with, to be told after its entries
	plain   []byte // a line without colours

	time        int64
	bytes       []byte
	fault       string
	last        int64
	rises, fall int64
	err         error
}

// Open reads the inputs of set, all in one format; Unknown is recognised by content, and is Raw where
// nothing else is.
func Open(set *input.Set, format Format) (*Saved, error) {
	if format == Unknown {
		head, err := set.Peek(16 << 10)
		if err != nil {
			return nil, err
		}
		if format = Recognise(head); format == Unknown {
			format = Raw
		}
	}
	s := &Saved{set: set, format: format}
	s.decoder.page = &s.page
	if format == QueryRange {
		s.next = s.nextAnswer
		return s, nil
	}
	s.lines, s.next = input.NewLines(set), s.nextLine
	return s, nil
}

// Format is the form that the inputs have.
func (s *Saved) Format() Format { return s.format }

// Next advances to the next entry, over the ends of inputs; false at the end, or on an error that Err
// then gives.
func (s *Saved) Next() bool {
	if s.err != nil || !s.next() {
		return false
	}
	if s.time != 0 && s.last != 0 {
		switch {
		case s.time > s.last:
			s.rises++
		case s.time < s.last:
			s.fall++
		}
	}
	if s.time != 0 {
		s.last = s.time
	}
	return true
}

// Bytes is the line of the current entry without its end, valid until the next call of Next.
func (s *Saved) Bytes() []byte { return s.bytes }

// Fault tells why the current entry is not whole, as a short phrase; empty for a whole one.
func (s *Saved) Fault() string { return s.fault }

// Time is when the current entry was logged, in nanoseconds since 1970; 0 where the form holds no
// time, or the entry has a fault. In logcli's default and jsonl output it is a whole second as a rule.
func (s *Saved) Time() int64 { return s.time }

// Number is the number of the current entry's line within its input, from 1; of the entry where an
// answer of query_range is read.
func (s *Saved) Number() int64 {
	if s.lines != nil {
		return s.lines.Number()
	}
	return s.number
}

// Input is the base name of the input that the current entry stands in.
func (s *Saved) Input() string { return s.set.Name() }

// Backward tells that most entries so far stand after one of a later time, as logcli writes them
// unless it is told --forward. Answers of query_range are sorted here and never backward.
func (s *Saved) Backward() bool { return s.fall > s.rises }

// Err is what ended reading; nil after a good end.
func (s *Saved) Err() error {
	if s.err != nil {
		return s.err
	}
	return s.set.Err()
}

// nextLine gives the entry of the next line.
func (s *Saved) nextLine() bool {
	for s.lines.Next() {
		s.time, s.bytes, s.fault = 0, s.lines.Bytes(), s.lines.Fault()
		if s.fault != "" {
			s.bytes = nil
			return true
		}
		if s.format == Raw {
			return true
		}
		if blank(s.bytes) || isNote(s.bytes) {
			continue // not an entry
		}
		switch s.format {
		case Default:
			s.defaultLine()
		case JSONL:
			s.row("line", "timestamp")
		default:
			s.row("_msg", "_time")
		}
		return true
	}
	return false
}

func blank(line []byte) bool { return len(bytes.TrimLeft(line, " \t\r")) == 0 }

// row reads the current line as one object.
func (s *Saved) row(text, when string) {
	d := &s.decoder
	d.reset(nil, s.bytes)
	s.page.reset()
	if d.row(text, when) && !d.end() {
		d.fail(notJSON)
	}
	if d.err != nil || len(s.page.list) == 0 {
		s.bytes, s.fault = nil, "not an entry in JSON"
		return
	}
	e := s.page.list[0]
	s.bytes, s.fault, s.time = s.page.line(0), e.fault, e.at
}

// defaultLine reads the current line as logcli's default output.
func (s *Saved) defaultLine() {
	line := uncolour(s.bytes, &s.plain)
	at, rest, ok := cutTime(line)
	if !ok {
		// a line of an entry of several, or of something else
		s.bytes, s.fault = nil, "line without the time that logcli writes"
		return
	}
	if after, ok := cutLabels(rest); ok {
		rest = after
	}
	s.time, s.bytes = at, rest
}

// cutTime takes "2019-01-22T00:26:14Z " from the start of a line.
func cutTime(line []byte) (at int64, rest []byte, ok bool) {
	end := bytes.IndexByte(line, ' ')
	if end < 0 || end > 35 {
		return 0, nil, false
	}
	at, ok = instant(line[:end])
	return at, line[end+1:], ok
}

// cutLabels takes `{pod="a", app="b"}   ` from the start of a line; false where it does not begin with
// labels. A line that is JSON itself does not: its keys end in a colon.
func cutLabels(line []byte) (rest []byte, ok bool) {
	if len(line) == 0 || line[0] != '{' {
		return nil, false
	}
	line = bytes.TrimLeft(line[1:], " ")
	for first := true; len(line) > 0; first = false {
		if line[0] == '}' {
			return bytes.TrimLeft(line[1:], " "), true
		}
		if !first {
			if line[0] != ',' {
				return nil, false
			}
			line = bytes.TrimLeft(line[1:], " ")
		}
		if line, ok = cutLabel(line); !ok {
			return nil, false
		}
	}
	return nil, false
}

// cutLabel takes one `name="value"`, whose name may be quoted as well.
func cutLabel(line []byte) (rest []byte, ok bool) {
	if len(line) > 0 && line[0] == '"' {
		if line, ok = cutQuoted(line); !ok {
			return nil, false
		}
	} else {
		n := 0
		for n < len(line) && isLabel(line[n]) {
			n++
		}
		if n == 0 {
			return nil, false
		}
		line = line[n:]
	}
	if len(line) == 0 || line[0] != '=' {
		return nil, false
	}
	return cutQuoted(line[1:])
}

func isLabel(c byte) bool {
	return c|0x20 >= 'a' && c|0x20 <= 'z' || c >= '0' && c <= '9' || c == '_' || c == '.' || c == ':' || c == '-'
}

func cutQuoted(line []byte) (rest []byte, ok bool) {
	if len(line) == 0 || line[0] != '"' {
		return nil, false
	}
	for i := 1; i < len(line); i++ {
		switch line[i] {
		case '\\':
			i++
		case '"':
			return line[i+1:], true
		}
	}
	return nil, false
}

// uncolour removes the colour codes of a terminal, which logcli puts around the time and the labels.
// It gives line as it is where there are none.
func uncolour(line []byte, into *[]byte) []byte {
	if bytes.IndexByte(line, '\x1b') < 0 {
		return line
	}
	out := (*into)[:0]
	for len(line) > 0 {
		if n := colour(line); n > 0 {
			line = line[n:]
			continue
		}
		out = append(out, line[0])
		line = line[1:]
	}
	*into = out
	return out
}

// colour is the length of a code such as ESC [ 1 ; 34 m at the start of a line, 0 where there is none.
func colour(line []byte) int {
	if len(line) < 3 || line[0] != '\x1b' || line[1] != '[' {
		return 0
	}
	for i, c := range line[2:min(len(line), 18)] {
		if c == 'm' {
			return i + 3
		}
		if (c < '0' || c > '9') && c != ';' {
			return 0
		}
	}
	return 0
}

// nextAnswer gives the next entry of an answer of query_range, and after the last one what was wrong
// with the answer, as one lost record.
func (s *Saved) nextAnswer() bool {
	for {
		if s.at < len(s.page.list) {
			s.at++
			s.number++
			e := s.page.list[s.at-1]
			s.time, s.bytes, s.fault = e.at, s.page.line(s.at-1), e.fault
			return true
		}
		if s.trouble != "" {
			s.number++
			s.time, s.bytes, s.fault = 0, nil, s.trouble
			s.trouble, s.open = "", false // where the next answer begins cannot be known
			return true
		}
		if !s.open {
			if !s.set.Next() {
				return false
			}
			s.open, s.number = true, 0
			s.decoder.reset(s.set, nil)
		}
		if !s.answer() {
			return false
		}
	}
}

// answer reads one answer of the current input into the page; false on an error of the reading.
func (s *Saved) answer() bool {
	s.page.reset()
	s.at = 0
	if s.decoder.end() {
		s.open, s.trouble = false, s.set.Problem()
		return s.set.Err() == nil
	}
	err := s.decoder.queryRange()
	s.page.sort()
	switch {
	case err == nil:
	case s.set.Err() != nil:
		return false
	case is[notLogs](err):
		s.err = fault.New(fault.TRF002, "%s cannot be traffic: %v", s.set.Name(), err).
			WithNext("Save the answer to a query for log lines: a selection such as {app=\"nginx\"}, without a function over it.")
		return false
	case errors.Is(err, errTooLarge):
		s.err = fault.New(fault.TRF002, "an answer in %s holds more than %d MiB of lines", s.set.Name(), maxPage>>20).
			WithNext("Save it in parts, or with `logcli --forward -o jsonl`, which is read line by line.")
		return false
	case errors.Is(err, errCut) && s.set.Problem() != "":
		s.trouble = s.set.Problem()
	default:
		s.trouble = printable(err.Error(), 100)
	}
	return true
}
