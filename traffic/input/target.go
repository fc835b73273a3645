package input

import "bytes"

// Path is the path of a request target: scheme and authority of an absolute form are removed, query
// and fragment are cut, nothing is decoded. It is "/" where nothing is left. It shares the memory of
// target.
func Path(target []byte) []byte {
	if len(target) > 0 && target[0] != '/' {
		target = target[authority(target):]
	}
	for i, c := range target {
		if c == '?' || c == '#' {
			target = target[:i]
			break
		}
	}
	if len(target) == 0 {
		return []byte{'/'}
	}
	return target
}

// authority is the length of "scheme://authority" at the start of an absolute form (RFC 3986, 3), 0
// for any other form.
func authority(target []byte) int {
	i := bytes.IndexByte(target, ':')
	if i <= 0 || !bytes.HasPrefix(target[i:], []byte("://")) || !isScheme(target[:i]) {
		return 0
	}
	i += len("://")
	if end := bytes.IndexAny(target[i:], "/?#"); end >= 0 {
		return i + end
	}
	return len(target)
}

func isScheme(s []byte) bool {
	for i, c := range s {
		letter := c|0x20 >= 'a' && c|0x20 <= 'z'
		if !letter && (i == 0 || (c < '0' || c > '9') && c != '+' && c != '.' && c != '-') {
			return false
		}
	}
	return true
}

// HasControl tells whether b holds an ASCII control character. No request can carry one in its target,
// and a sender that wrote it out would be open to request splitting.
func HasControl(b []byte) bool {
	for _, c := range b {
		if c < 0x20 || c == 0x7f {
			return true
		}
	}
	return false
}
