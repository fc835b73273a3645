package accesslog

import "bytes"

// strip removes what collectors write before a line: the time, stream and tag of a container runtime,
// a name and a bar, a pod in brackets, a syslog header, Docker's JSON. Prefixes may stand behind each
// other. A prefix that is none is left alone.
func (s *Source) strip(line []byte) []byte {
	for range 4 { // more than any collector writes
		rest := s.strip1(line)
		if len(rest) == len(line) {
			break
		}
		line = rest
	}
	return line
}

func (s *Source) strip1(line []byte) []byte {
	if len(line) < 8 {
		return line
	}
	switch c := line[0]; {
	case isDigit(c):
		if line[4] == '-' && len(line) > 20 && line[10] == 'T' {
			return stripTime(line)
		}
	case c == '{':
		return s.unwrap(line)
	case c == '[':
		if bytes.HasPrefix(line, []byte("[pod/")) {
			if i := bytes.Index(line, []byte("] ")); i > 0 {
				return line[i+2:]
			}
		}
	case c == '<':
		return stripPriority(line)
	case c == 0x1b:
		if i := bytes.IndexByte(line[:8], 'm'); i > 0 {
			return line[i+1:]
		}
	case c >= 'A' && c <= 'Z' && line[3] == ' ' && len(line) > 16 && line[6] == ' ' && line[9] == ':':
		if month(line[:3]) != 0 && line[15] == ' ' {
			return stripTag(line, line[16:])
		}
	}
	return stripName(line)
}

// stripName removes "name | " as docker compose writes it, with or without colours.
func stripName(line []byte) []byte {
	i := 0
	for i < len(line) && i < 80 && (isDigit(line[i]) || line[i]|0x20 >= 'a' && line[i]|0x20 <= 'z' || line[i] == '-' || line[i] == '_' || line[i] == '.') {
		i++
	}
	from := i
	for i < len(line) && i < 120 && line[i] == ' ' {
		i++
	}
	if from == 0 || i == from || i+1 >= len(line) || line[i] != '|' || line[i+1] != ' ' {
		return line
	}
	return line[i+2:]
}

// stripTime removes what begins with a time of RFC 3339: that of a container runtime (CRI), of
// `docker logs --timestamps`, or of syslog. A load balancer's line begins so too, and is left alone.
func stripTime(line []byte) []byte {
	i := bytes.IndexByte(line, ' ')
	if i < 20 || i > 40 {
		return line
	}
	rest := line[i+1:]
	if bytes.HasPrefix(rest, []byte("stdout ")) || bytes.HasPrefix(rest, []byte("stderr ")) {
		if len(rest) > 9 && rest[8] == ' ' && (rest[7] == 'F' || rest[7] == 'P') {
			return rest[9:]
		}
		return rest[7:]
	}
	if isClassic(rest) {
		return line
	}
	if len(rest) > 0 && (rest[0] == '{' || rest[0] == '[') {
		return rest
	}
	if tagged := stripTag(rest, rest); len(tagged) < len(rest) {
		return tagged
	}
	return rest
}

// stripPriority removes "<13>" with what follows it: a header of RFC 5424 or of RFC 3164.
func stripPriority(line []byte) []byte {
	i := bytes.IndexByte(line, '>')
	if i < 2 || i > 4 || number(line[1:i]) < 0 {
		return line
	}
	rest := line[i+1:]
	if len(rest) < 3 || rest[0] != '1' || rest[1] != ' ' {
		return rest // an old header follows, or none
	}
	rest = rest[2:]
	for range 5 { // time, host, application, process, message
		n := bytes.IndexByte(rest, ' ')
		if n < 0 {
			return line
		}
		rest = rest[n+1:]
	}
	return stripData(rest)
}

// stripData removes the structured data of RFC 5424 and the byte-order mark that may follow it.
func stripData(b []byte) []byte {
	switch {
	case len(b) > 1 && b[0] == '-' && b[1] == ' ':
		b = b[2:]
	case len(b) > 0 && b[0] == '[':
		quoted := false
		for i := 1; i < len(b); i++ {
			switch {
			case b[i] == '\\' && quoted:
				i++
			case b[i] == '"':
				quoted = !quoted
			case b[i] == ']' && !quoted && i+1 < len(b) && b[i+1] == ' ':
				return bytes.TrimPrefix(b[i+2:], []byte("\xef\xbb\xbf"))
			}
		}
	}
	return bytes.TrimPrefix(b, []byte("\xef\xbb\xbf"))
}

// stripTag removes "host tag[pid]: " at the start of b; whole comes back when there is none.
func stripTag(whole, b []byte) []byte {
	i := bytes.IndexByte(b, ' ')
	if i <= 0 {
		return whole
	}
	if b[i-1] == ':' { // the tag alone
		return b[i+1:]
	}
	j := bytes.IndexByte(b[i+1:], ' ')
	if j < 2 || b[i+j] != ':' {
		return whole
	}
	return b[i+j+2:]
}

// unwrap takes the line out of a record of Docker's json-file driver.
func (s *Source) unwrap(line []byte) []byte {
	const head = `{"log":"`
	if len(line) < len(head) || string(line[:len(head)]) != head {
		return line
	}
	end := closing(line[len(head):])
	if end < 0 {
		return line
	}
	inner := line[len(head) : len(head)+end]
	if bytes.IndexByte(inner, '\\') >= 0 {
		s.inner = unescape(s.inner[:0], inner)
		inner = s.inner
	}
	return bytes.TrimRight(inner, "\r\n")
}
