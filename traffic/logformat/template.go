package logformat

import (
	"bytes"
	"slices"
	"strings"

	"seatrial/fault"
)

// Field is what a part of a line holds.
type Field uint8

// The fields of a line that mean something here.
const (
	Other        Field = iota // anything else: passed over
	Request                   // METHOD target HTTP/version
	Method                    //
	Target                    // path and query, perhaps with scheme and authority in front
	Query                     // with or without its question mark
	Status                    //
	TimeCLF                   // dd/Mon/yyyy:hh:mm:ss +zzzz
	TimeISO                   // yyyy-mm-ddThh:mm:ss+zz:zz
	TimeSeconds               // since 1970, perhaps with a fraction
	TimeMillis                // since 1970
	TimeMicros                // since 1970
	FracMillis                // of the second of another field
	FracMicros                // of the second of another field
	Zone                      // of another field: +zzzz
	Seconds                   // how long it took
	Millis                    // how long it took
	Micros                    // how long it took
	RequestSize               // bytes
	ResponseSize              // bytes
	Agent                     //
	Client                    // an address
	Forwarded                 // the addresses of X-Forwarded-For
	fields
)

// Values are the parts of one line, by Field; nil for those that the format does not have. They share
// the memory of the line.
type Values [fields][]byte

// op is one part of a line: a value and the text that ends it.
type op struct {
	field  Field
	until  string // the text behind it; empty at the end of the format
	quoted bool   // it stands between quotes, and those within it are escaped
	list   bool   // it may hold several values behind commas or colons, with spaces
	last   bool
	size   int  // it is that long; 0: it ends where the text behind it is
	host   bool // what stands before the first slash is no part of the value
}

// Template is a compiled format string. It may be used by several goroutines.
type Template struct {
	head    string // the text before the first value
	ops     []op
	reasons []string
	has     [fields]bool
	json    bool
	ends    bool // its time is that of the response's end, not of the request's start
}

// Has tells whether the format has a field.
func (t *Template) Has(f Field) bool { return t.has[f] }

// JSON tells that values are escaped as in JSON.
func (t *Template) JSON() bool { return t.json }

// EndTime tells that the time of a line is when the request was done, as NGINX has it; Apache gives
// when it began, unless the format asks for the end.
func (t *Template) EndTime() bool { return t.ends }

func (t *Template) duration() bool { return t.has[Seconds] || t.has[Millis] || t.has[Micros] }

// Match cuts a line into values. Text behind the end of the format is passed over, since servers and
// the people who run them add fields. The reason is empty when the line fits, and otherwise says which
// part of the format it lacks.
func (t *Template) Match(line []byte, v *Values) (reason string) {
	*v = Values{}
	if len(line) < len(t.head) || string(line[:len(t.head)]) != t.head {
		return "the line does not begin as the format string does"
	}
	b := line[len(t.head):]
	for i := range t.ops {
		o := &t.ops[i]
		end := o.end(b)
		if end < 0 {
			return t.reasons[i]
		}
		if o.field != Other && (v[o.field] == nil || len(v[o.field]) == 1 && v[o.field][0] == '-') {
			v[o.field] = b[o.start(b[:end]):end:end]
		}
		b = b[end+len(o.until):]
	}
	return ""
}

// start is where the value begins that is wanted.
func (o *op) start(b []byte) int {
	if o.host {
		return max(0, bytes.IndexByte(b, '/'))
	}
	return 0
}

// end is where the value at the start of b ends, -1 when the text that must follow is not there.
func (o *op) end(b []byte) int {
	switch {
	case o.size > 0:
		if len(b) < o.size {
			return -1
		}
		return o.size
	case o.last:
		return o.lastEnd(b)
	case o.quoted:
		i := closing(b)
		if i < 0 || len(b)-i < len(o.until) || string(b[i:i+len(o.until)]) != o.until {
			return -1
		}
		return i
	}
	from := 0
	for {
		i := index(b[from:], o.until)
		if i < 0 {
			return -1
		}
		i += from
		if !o.list || !continues(b[:i], b[i:]) {
			return i
		}
		from = i + 1
	}
}

// continues tells whether a list goes on behind a space: "a, b" and "a : b".
func continues(before, after []byte) bool {
	if n := len(before); n > 0 && (before[n-1] == ',' || n > 1 && before[n-1] == ':' && before[n-2] == ' ') {
		return true
	}
	return bytes.HasPrefix(after, []byte(" : "))
}

// lastEnd ends the last value of the format: at a space, except for those that may hold spaces.
func (o *op) lastEnd(b []byte) int {
	if o.list || o.field == Request || o.field == Agent || o.field == TimeCLF {
		return len(b)
	}
	if i := bytes.IndexByte(b, ' '); i >= 0 {
		return i
	}
	return len(b)
}

func index(b []byte, text string) int {
	first := text[0]
	for from := 0; ; {
		i := bytes.IndexByte(b[from:], first)
		if i < 0 || len(b)-from-i < len(text) {
			return -1
		}
		from += i
		if string(b[from:from+len(text)]) == text {
			return from
		}
		from++
	}
}

// closing finds the quote that ends a quoted value: one with an even number of backslashes before it.
func closing(b []byte) int {
	for from := 0; ; {
		i := bytes.IndexByte(b[from:], '"')
		if i < 0 {
			return -1
		}
		i += from
		slashes := 0
		for slashes < i-from && b[i-1-slashes] == '\\' {
			slashes++
		}
		if slashes%2 == 0 {
			return i
		}
		from = i + 1
	}
}

// part is a piece of a format string: text, or a value with its name.
type part struct {
	text  string
	name  string
	field Field
	list  bool
	ends  bool // a time that is the end's
	host  bool // a target that may have a host in front, as in $host$request_uri
	value bool
}

// Compile reads an NGINX log_format string or an Apache LogFormat string: the string itself, or the
// whole directive as it stands in the configuration. What it cannot read, and a format without a
// request, is TRF-004.
func Compile(format string) (*Template, error) {
	var parts []part
	var err error
	nginx := isNGINX(format)
	t := &Template{}
	if nginx {
		text, escape := nginxDirective(format)
		t.json = escape == "json" || escape == "" && strings.HasPrefix(strings.TrimSpace(text), "{")
		parts = nginxParts(text)
	} else {
		text := apacheDirective(format)
		t.json = strings.HasPrefix(strings.TrimSpace(text), "{")
		parts, err = apacheParts(text)
	}
	if err != nil {
		return nil, err
	}
	if err := t.build(merge(parts)); err != nil {
		return nil, err
	}
	if !t.has[Request] && !(t.has[Method] && t.has[Target]) {
		need := "$request, or $request_method and $request_uri"
		if !nginx {
			need = "%r, or %m and %U"
		}
		return nil, fault.New(fault.TRF004, "the log format holds no request: it needs %s", need)
	}
	return t, nil
}

// merge joins neighbours: texts, and the parts that make up a target, such as $uri$is_args$args.
func merge(parts []part) []part {
	var out []part
	for _, p := range parts {
		n := len(out) - 1
		switch {
		case !p.value && p.text == "":
		case n < 0 || out[n].value != p.value:
			out = append(out, p)
		case !p.value:
			out[n].text += p.text
		case (p.field == Target || out[n].field == Target) && isTargetPart(p) && isTargetPart(out[n]):
			out[n].host = out[n].host || out[n].field != Target
			out[n].field = Target
			out[n].name += p.name
		default:
			out = append(out, p)
		}
	}
	return out
}

// isTargetPart tells what may stand beside a target without a text between: its query, or a host in front.
func isTargetPart(p part) bool {
	return p.field == Target || p.field == Query || p.field == Other
}

// build makes the matcher of parts.
func (t *Template) build(parts []part) error {
	if len(parts) > 0 && !parts[0].value {
		t.head = parts[0].text
		parts = parts[1:]
	}
	before := t.head
	for i, p := range parts {
		if !p.value {
			before = p.text
			continue
		}
		o := op{field: p.field, list: p.list, host: p.host, last: i == len(parts)-1}
		if !o.last {
			if o.size = sizes[p.field]; o.size > 0 && parts[i+1].field == Zone {
				t.add(o, p)
				continue
			}
			o.size = 0
			if parts[i+1].value {
				return fault.New(fault.TRF004, "%s and %s of the log format stand next to each other, so that nobody can tell where one ends",
					p.name, parts[i+1].name)
			}
			o.until = parts[i+1].text
			o.quoted = strings.HasSuffix(before, `"`) && o.until[0] == '"'
		}
		t.add(o, p)
	}
	return nil
}

// sizes are the lengths of the values that a zone may follow at once.
var sizes = [fields]int{FracMillis: 3, FracMicros: 6, TimeISO: 19, TimeCLF: 20}

func (t *Template) add(o op, p part) {
	t.ops = append(t.ops, o)
	t.reasons = append(t.reasons, "the line has no "+p.name+" as the format string has it")
	t.has[p.field] = true
	t.ends = t.ends || p.ends
}

// isNGINX tells $name from %h.
func isNGINX(format string) bool {
	for i := 0; i+1 < len(format); i++ {
		if format[i] == '$' && (format[i+1] == '{' || isName(format[i+1])) {
			return true
		}
	}
	return false
}

func isName(c byte) bool {
	return c|0x20 >= 'a' && c|0x20 <= 'z' || c >= '0' && c <= '9' || c == '_'
}

// nginxDirective takes the string out of `log_format name [escape=...] 'a' 'b';`. A string that is no
// directive comes back as it is.
func nginxDirective(s string) (text, escape string) {
	trimmed := strings.TrimSpace(s)
	rest, ok := strings.CutPrefix(trimmed, "log_format")
	bare := trimmed
	if ok && rest != "" && strings.ContainsAny(rest[:1], " \t\r\n") {
		_, bare = cutWord(rest)
		if word, after := cutWord(bare); strings.HasPrefix(word, "escape=") {
			escape, bare = strings.TrimPrefix(word, "escape="), after
		}
		bare = strings.TrimSpace(bare)
	} else if word, after := cutWord(trimmed); strings.HasPrefix(word, "escape=") {
		escape, bare = strings.TrimPrefix(word, "escape="), strings.TrimSpace(after)
	}
	bare = strings.TrimSuffix(bare, ";")
	if !strings.HasPrefix(bare, "'") && !ok {
		return strings.TrimSuffix(trimmed, "\n"), escape
	}
	return unquote(bare), escape
}

func cutWord(s string) (word, rest string) {
	s = strings.TrimLeft(s, " \t\r\n")
	if i := strings.IndexAny(s, " \t\r\n"); i >= 0 {
		return s[:i], s[i:]
	}
	return s, ""
}

// unquote joins strings in single or double quotes that follow each other.
func unquote(s string) string {
	var out strings.Builder
	for s = strings.TrimSpace(s); s != ""; s = strings.TrimSpace(s) {
		quote := s[0]
		if quote != '\'' && quote != '"' {
			out.WriteString(s)
			break
		}
		i := 1
		for ; i < len(s) && s[i] != quote; i++ {
			if s[i] == '\\' && i+1 < len(s) && (s[i+1] == quote || s[i+1] == '\\') {
				i++
			}
			out.WriteByte(s[i])
		}
		s = s[min(i+1, len(s)):]
	}
	return out.String()
}

// nginxParts cuts a log_format string at its variables.
func nginxParts(s string) []part {
	var out []part
	for s != "" {
		i := strings.IndexByte(s, '$')
		if i < 0 {
			return append(out, part{text: s})
		}
		out = append(out, part{text: s[:i]})
		s = s[i+1:]
		n := 0
		if strings.HasPrefix(s, "{") && strings.IndexByte(s, '}') > 1 {
			end := strings.IndexByte(s, '}')
			out = append(out, nginxValue(s[1:end]))
			s = s[end+1:]
			continue
		}
		for n < len(s) && isName(s[n]) {
			n++
		}
		if n == 0 {
			out = append(out, part{text: "$"})
			continue
		}
		out = append(out, nginxValue(s[:n]))
		s = s[n:]
	}
	return out
}

// nginxValue knows the variables; any other is one that modules or people define.
func nginxValue(name string) part {
	p := part{name: "$" + name, value: true, list: strings.HasPrefix(name, "upstream_")}
	switch name {
	case "request":
		p.field = Request
	case "request_method":
		p.field = Method
	case "request_uri", "uri", "document_uri":
		p.field = Target
	case "args", "query_string":
		p.field = Query
	case "status":
		p.field = Status
	case "time_local":
		p.field, p.ends = TimeCLF, true
	case "time_iso8601":
		p.field, p.ends = TimeISO, true
	case "msec":
		p.field, p.ends = TimeSeconds, true
	case "request_time":
		p.field = Seconds
	case "request_length":
		p.field = RequestSize
	case "bytes_sent", "body_bytes_sent":
		p.field = ResponseSize
	case "http_user_agent":
		p.field = Agent
	case "remote_addr", "realip_remote_addr", "proxy_protocol_addr", "http_x_real_ip":
		p.field = Client
	case "http_x_forwarded_for", "proxy_add_x_forwarded_for":
		p.field, p.list = Forwarded, true
	}
	return p
}

// apacheDirective takes the string out of `LogFormat "..." name`, and resolves its escapes.
func apacheDirective(s string) string {
	s = strings.TrimRight(strings.TrimLeft(s, " \t\r\n"), "\r\n")
	if rest, ok := cutDirective(s); ok {
		s = strings.TrimSpace(rest)
		if strings.HasPrefix(s, `"`) {
			if end := closing([]byte(s[1:])); end >= 0 {
				s = s[1 : 1+end]
			}
		}
	}
	return strings.NewReplacer(`\"`, `"`, `\\`, `\`, `\t`, "\t", `\n`, "").Replace(s)
}

func cutDirective(s string) (string, bool) {
	const word = "logformat"
	if len(s) > len(word) && strings.EqualFold(s[:len(word)], word) && strings.ContainsAny(s[len(word):][:1], " \t") {
		return s[len(word):], true
	}
	return s, false
}

// apacheParts cuts a LogFormat string at its directives.
func apacheParts(s string) ([]part, error) {
	var out []part
	for s != "" {
		i := strings.IndexByte(s, '%')
		if i < 0 {
			return append(out, part{text: s}), nil
		}
		out = append(out, part{text: s[:i]})
		s = s[i:]
		n := 1
		for n < len(s) && (strings.IndexByte("<>!,", s[n]) >= 0 || s[n] >= '0' && s[n] <= '9') {
			n++
		}
		argument := ""
		if n < len(s) && s[n] == '{' {
			end := strings.IndexByte(s[n:], '}')
			if end < 0 {
				return nil, fault.New(fault.TRF004, "the log format ends within %s", s)
			}
			argument = s[n+1 : n+end]
			n += end + 1
		}
		size := 1
		if n < len(s) && s[n] == '^' {
			size = 3
		}
		if n+size > len(s) {
			return nil, fault.New(fault.TRF004, "the log format ends within %s", s)
		}
		found, err := apacheValue(s[:n+size], argument, s[n:n+size])
		if err != nil {
			return nil, err
		}
		out = append(out, found...)
		s = s[n+size:]
	}
	return out, nil
}

// apacheValue knows the directives of mod_log_config and mod_logio.
func apacheValue(name, argument, letter string) ([]part, error) {
	p := part{name: name, value: true}
	switch letter {
	case "%":
		return []part{{text: "%"}}, nil
	case "t":
		return apacheTime(name, argument)
	case "T":
		switch argument {
		case "", "s":
			p.field = Seconds
		case "ms":
			p.field = Millis
		case "us":
			p.field = Micros
		default:
			return nil, fault.New(fault.TRF004, "%s of the log format is not known; the units of %%T are s, ms and us", name)
		}
	case "i":
		switch strings.ToLower(argument) {
		case "user-agent":
			p.field = Agent
		case "x-forwarded-for":
			p.field, p.list = Forwarded, true
		}
	default:
		if !strings.Contains("aAbBCDefhHIklLmnoOpPqrRsSuUvVXx^ti^to^FB", letter) {
			return nil, fault.New(fault.TRF004, "%s of the log format is not known", name)
		}
		p.field = apacheField(letter)
	}
	return []part{p}, nil
}

func apacheField(letter string) Field {
	switch letter {
	case "r":
		return Request
	case "m":
		return Method
	case "U":
		return Target
	case "q":
		return Query
	case "s":
		return Status
	case "D":
		return Micros
	case "b", "B", "O":
		return ResponseSize
	case "I":
		return RequestSize
	case "a", "h":
		return Client
	}
	return Other
}

// apacheTime reads %t and the forms of %{...}t that people use.
func apacheTime(name, argument string) ([]part, error) {
	what, ends := strings.CutPrefix(argument, "end:")
	what = strings.TrimPrefix(what, "begin:")
	value := func(f Field) part { return part{name: name, value: true, field: f, ends: ends} }
	switch what {
	case "": // the brackets belong to it
		return []part{{text: "["}, value(TimeCLF), {text: "]"}}, nil
	case "sec":
		return []part{value(TimeSeconds)}, nil
	case "msec":
		return []part{value(TimeMillis)}, nil
	case "usec":
		return []part{value(TimeMicros)}, nil
	case "msec_frac":
		return []part{value(FracMillis)}, nil
	case "usec_frac":
		return []part{value(FracMicros)}, nil
	case "%z":
		return []part{value(Zone)}, nil
	}
	open, inner := "", what
	end := ""
	if strings.HasPrefix(inner, "[") {
		open, inner = "[", inner[1:]
	}
	if strings.HasSuffix(inner, "]") {
		end, inner = "]", inner[:len(inner)-1]
	}
	inner = strings.NewReplacer("%F", "%Y-%m-%d", "%T", "%H:%M:%S").Replace(inner)
	date := strings.TrimSuffix(strings.TrimSuffix(inner, "%z"), " ")
	switch {
	case date == "%d/%b/%Y:%H:%M:%S":
		return []part{{text: open}, value(TimeCLF), {text: end}}, nil
	case slices.Contains([]string{"%Y-%m-%dT%H:%M:%S", "%Y-%m-%d %H:%M:%S", "%Y-%m-%dT%H:%M:%SZ"}, date):
		return []part{{text: open}, value(TimeISO), {text: end}}, nil
	case inner == "%s":
		return []part{{text: open}, value(TimeSeconds), {text: end}}, nil
	}
	return nil, fault.New(fault.TRF004, "the time %s of the log format is not read; %%t, %%{%%Y-%%m-%%dT%%H:%%M:%%S%%z}t, %%{%%d/%%b/%%Y:%%H:%%M:%%S %%z}t and %%{msec}t are", name)
}
