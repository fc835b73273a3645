package otlp

import "io"

// readBuffer is how much is read at once, in bytes. A window grows past it for a long string only.
const readBuffer = 128 << 10

// window is the part of a stream that is looked at: its unread bytes are buf[r:w].
type window struct {
	src   io.Reader
	buf   []byte
	r, w  int
	base  int64 // offset of buf[0] within the stream
	ended bool  // src has no more
}

// reset starts at the beginning of another stream.
func (v *window) reset(src io.Reader) {
	if v.buf == nil {
		v.buf = make([]byte, readBuffer)
	}
	v.src, v.r, v.w, v.base, v.ended = src, 0, 0, 0, false
}

// at is the offset of the next byte.
func (v *window) at() int64 { return v.base + int64(v.r) }

// more reads more bytes, keeping those from keep on, and gives by how much the kept ones moved to the
// front; false at the end of the stream.
func (v *window) more(keep int) (moved int, ok bool) {
	if v.ended {
		return 0, false
	}
	if keep > 0 {
		copy(v.buf, v.buf[keep:v.w])
		v.r -= keep
		v.w -= keep
		v.base += int64(keep)
	}
	if v.w == len(v.buf) {
		v.buf = append(v.buf, make([]byte, len(v.buf))...)
	}
	for {
		n, err := v.src.Read(v.buf[v.w:])
		v.w += n
		v.ended = err != nil
		if n > 0 {
			return keep, true
		}
		if err != nil {
			return keep, false // the Set knows whether it is the end or a failure
		}
	}
}

// fill tries to have n unread bytes, and gives them, or all that are left.
func (v *window) fill(n int) []byte {
	for v.w-v.r < n {
		if _, ok := v.more(v.r); !ok {
			break
		}
	}
	return v.buf[v.r:min(v.w, v.r+n)]
}

// discard reads over n bytes; false when there are fewer.
func (v *window) discard(n int64) bool {
	for int64(v.w-v.r) < n {
		n -= int64(v.w - v.r)
		v.r = v.w
		if _, ok := v.more(v.r); !ok {
			return false
		}
	}
	v.r += int(n)
	return true
}

// unread puts bytes back in front of the next one.
func (v *window) unread(b []byte) {
	if len(b) <= v.r {
		v.r -= copy(v.buf[v.r-len(b):v.r], b)
		return
	}
	rest := v.buf[v.r:v.w]
	at := v.at() - int64(len(b))
	all := make([]byte, max(len(v.buf), len(b)+len(rest)))
	v.w = copy(all[copy(all, b):], rest) + len(b)
	v.buf, v.r, v.base = all, 0, at
}
