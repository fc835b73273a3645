package traffic

import "strings"

const (
	maxForms = 128  // spellings of one path; a path with more is hostile
	maxJudge = 8192 // bytes of a path; a longer one is not judged, hence never safe
)

// isPlain tells that a path has one reading only, which is the usual case.
func isPlain(path string) bool {
	if path == "" || path[0] != '/' || len(path) > maxJudge {
		return false
	}
	for i := 0; i < len(path); i++ {
		switch c := path[i]; {
		case c == '%' || c == ';' || c == '\\' || c <= ' ' || c >= 0x7f:
			return false
		case c == '/' && i+1 < len(path) && (path[i+1] == '/' || path[i+1] == '.'):
			return false
		}
	}
	return true
}

// forms lists every path that some server could take the raw path for: decoded once, twice and
// further, with %2F as a slash, with slashes merged, without ;parameters, without dot segments, with
// backslashes as slashes, cut at a decoded ? or #, in every combination. The raw path is the first.
// why is set when no decision of "safe" can be had: the list may then be incomplete.
func forms(raw string) (all []string, why string) {
	if raw == "" || raw[0] != '/' {
		return nil, "the path does not start with /"
	}
	if len(raw) > maxJudge {
		return nil, "the path is too long to judge"
	}
	all = append(all, raw)
	seen := map[string]bool{raw: true}
	for i := 0; i < len(all); i++ {
		if bad := unreadable(all[i]); bad != "" && why == "" {
			why = bad
		}
		for _, read := range [...]func(string) string{decodeOnce, splitSlashes, mergeSlashes, stripParameters, removeDots, turnBackslashes, cutQuery} {
			f := read(all[i])
			if seen[f] {
				continue
			}
			if len(all) == maxForms {
				return all, "the path has too many readings"
			}
			seen[f] = true
			all = append(all, f)
		}
	}
	return all, why
}

// unreadable names what servers disagree about beyond what forms can list.
func unreadable(path string) string {
	for i := 0; i < len(path); i++ {
		c := path[i]
		next := byte(0)
		if i+1 < len(path) {
			next = path[i+1]
		}
		switch {
		case c < ' ' || c == 0x7f:
			return "the path holds a control character"
		case c == 0xC0 || c == 0xC1 || c == 0xE0 && next >= 0x80 && next < 0xA0 || c == 0xF0 && next >= 0x80 && next < 0x90:
			return "the path holds an overlong encoding"
		case c == '%' && (next == 'u' || next == 'U'):
			return "the path holds a %u escape"
		}
	}
	return ""
}

// decodeOnce decodes every percent-escape; what is not one stays.
func decodeOnce(s string) string {
	if strings.IndexByte(s, '%') < 0 {
		return s
	}
	b := make([]byte, 0, len(s))
	for i := 0; i < len(s); i++ {
		if s[i] == '%' && i+2 < len(s) && isHex(s[i+1]) && isHex(s[i+2]) {
			b = append(b, unhex(s[i+1])<<4|unhex(s[i+2]))
			i += 2
			continue
		}
		b = append(b, s[i])
	}
	return string(b)
}

// decodeAll decodes until nothing changes; each round is shorter than the last.
func decodeAll(s string) string {
	for {
		d := decodeOnce(s)
		if d == s {
			return s
		}
		s = d
	}
}

func splitSlashes(s string) string {
	s = strings.ReplaceAll(s, "%2F", "/")
	return strings.ReplaceAll(s, "%2f", "/")
}

func mergeSlashes(s string) string {
	for strings.Contains(s, "//") {
		s = strings.ReplaceAll(s, "//", "/")
	}
	return s
}

// stripParameters cuts each segment at its first semicolon.
func stripParameters(s string) string {
	if strings.IndexByte(s, ';') < 0 {
		return s
	}
	parts := strings.Split(s, "/")
	for i, p := range parts {
		parts[i], _, _ = strings.Cut(p, ";")
	}
	return strings.Join(parts, "/")
}

// removeDots is RFC 3986 section 5.2.4, with encoded dots as dots.
func removeDots(s string) string {
	parts := strings.Split(s[1:], "/")
	out := make([]string, 0, len(parts))
	for i, p := range parts {
		last := i == len(parts)-1
		switch dots(p) {
		case 1:
		case 2:
			if len(out) > 0 {
				out = out[:len(out)-1]
			}
		default:
			out = append(out, p)
			continue
		}
		if last {
			out = append(out, "")
		}
	}
	return "/" + strings.Join(out, "/")
}

// dots is 1 for ".", 2 for "..", in any encoding, else 0.
func dots(p string) int {
	n := 0
	for p != "" {
		switch {
		case p[0] == '.':
			p = p[1:]
		case len(p) >= 3 && p[0] == '%' && p[1] == '2' && (p[2] == 'e' || p[2] == 'E'):
			p = p[3:]
		default:
			return 0
		}
		if n++; n > 2 {
			return 0
		}
	}
	return n
}

func turnBackslashes(s string) string { return strings.ReplaceAll(s, `\`, "/") }

// cutQuery cuts at a ? or # that decoding has brought to light, but never the leading slash.
func cutQuery(s string) string {
	if i := strings.IndexAny(s, "?#"); i > 0 {
		return s[:i]
	}
	return s
}

func foldASCII(s string) string {
	for i := 0; i < len(s); i++ {
		if isUpper(s[i]) {
			b := []byte(s)
			for ; i < len(b); i++ {
				if isUpper(b[i]) {
					b[i] += 'a' - 'A'
				}
			}
			return string(b)
		}
	}
	return s
}
