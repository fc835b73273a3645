package otlp

import (
	"bytes"
	"encoding/binary"
	"errors"
	"io"

	"github.com/klauspost/compress/zstd"

	"seatrial/traffic/input"
)

// framing is how the documents of an input lie in it.
type framing uint8

const (
	jsonText framing = iota
	oneMessage
	prefixed // each with its length before it, as the collector's file exporter writes protobuf
	strange  // a binary format that is not known
)

// form is what documents were recognised as.
type form uint8

const (
	formJSON form = iota
	formProto
	formPrefixedProto
	formPrefixedJSON
	formZstdProto
	formZstdJSON
	forms // how many there are
)

// formNames stand in Skips.Format.
var formNames = [forms]string{"otlp-json", "otlp-proto", "otlp-proto length-prefixed", "otlp-json length-prefixed",
	"otlp-proto length-prefixed zstd", "otlp-json length-prefixed zstd"}

// isProto tells protobuf from JSON.
func (f form) isProto() bool {
	return f == formProto || f == formPrefixedProto || f == formZstdProto
}

// messageForm is the form of a message that has its length before it.
func messageForm(zstd, json bool) form {
	switch {
	case zstd && json:
		return formZstdJSON
	case zstd:
		return formZstdProto
	case json:
		return formPrefixedJSON
	}
	return formPrefixedProto
}

const (
	sniff       = 512       // bytes of an input that are looked at to tell its framing
	prefixLen   = 4         // bytes of the length before a message, big-endian
	maxMessage  = 256 << 20 // bytes; a longer one is not looked for when reading goes on behind damage
	headerBytes = 48        // enough to know a message by its head
	lookAhead   = 64 << 10  // bytes of a damaged message behind which the next one is looked for at once
	firstChunk  = 4 << 10   // bytes of a message that are copied first: what looks like one often turns out to be none
	tailBytes   = 8         // read bytes that stay at hand, so that a length among them can be found again
)

// zstdMagic starts a zstd frame.
var zstdMagic = []byte("\x28\xb5\x2f\xfd")

// Binary tells by an input's first bytes whether it is traces in protobuf, or messages with their
// length before them: no text.
func Binary(head []byte) bool {
	f := framingOf(head[:min(len(head), sniff)])
	return f == oneMessage || f == prefixed || f == strange && findHeader(head) >= 0
}

// framingOf tells the framing by an input's first bytes. Four or more NULs are the padding that log
// rotation leaves; fewer are the head of a length.
func framingOf(head []byte) framing {
	body := bytes.TrimLeft(head, "\x00")
	zeros := len(head) - len(body)
	text := bytes.TrimLeft(body, " \t\r\n")
	opens := len(text) > 0 && (text[0] == '{' || text[0] == '[')
	padded := zeros == 0 || zeros >= prefixLen
	switch {
	case padded && (opens || zeros == 0) && !hasBinary(body):
		return jsonText
	case zeros >= prefixLen:
		if hasBinary(body) {
			return strange
		}
		return jsonText
	case isMessage(head, endless):
		return oneMessage
	case zeros > 0 || startsMessage(head, false):
		return prefixed
	case opens:
		return jsonText
	}
	return strange
}

// hasBinary tells whether b holds what no text does.
func hasBinary(b []byte) bool {
	for _, c := range b {
		if c < 0x20 && c != '\t' && c != '\n' && c != '\r' && c != 0 {
			return true
		}
	}
	return false
}

// findHeader is where in b a length stands that a message seems to follow; -1 when nowhere.
func findHeader(b []byte) int {
	for i := range b {
		if startsMessage(b[i:], true) {
			return i
		}
	}
	return -1
}

// startsMessage tells whether a length and a message of that length stand at the start of b. strictly
// is for places where none is expected: there, one that is unusually long is not believed.
func startsMessage(b []byte, strictly bool) bool {
	if len(b) < prefixLen+2 {
		return false
	}
	length := int64(binary.BigEndian.Uint32(b))
	if length == 0 || strictly && length > maxMessage {
		return false
	}
	head := b[prefixLen:]
	switch {
	case bytes.HasPrefix(head, zstdMagic):
		return true
	case head[0] == '{':
		next := bytes.TrimLeft(head[1:], " \t\r\n")
		return len(next) > 0 && (next[0] == '"' || next[0] == '}')
	}
	return isMessage(head, length)
}

// isMessage tells whether b can start a TracesData of the given length: its first field is
// resource_spans, the first field of that is one that it has, and so is the first field within.
func isMessage(b []byte, length int64) bool {
	outer, n, size := field(b)
	if size <= 0 || outer != tagResourceSpans || n > uint64(length-int64(size)) {
		return false
	}
	if n == 0 {
		return length != endless // an empty line of text looks the same
	}
	inner, m, inSize := field(b[size:])
	if inSize <= 0 || m > n-min(n, uint64(inSize)) {
		return false
	}
	within := b[size+inSize:]
	if inner == 3<<3|delimited { // schema_url
		return !hasBinary(within[:min(uint64(len(within)), m)])
	}
	if m == 0 || len(within) == 0 {
		return inner == tagScopeSpans || inner == 1<<3|delimited
	}
	switch inner {
	case 1<<3 | delimited: // resource: attributes, dropped_attributes_count, entity_refs
		return within[0] == 1<<3|delimited || within[0] == 2<<3|varint || within[0] == 3<<3|delimited
	case tagScopeSpans, tagOldScopeSpans: // scope, spans, schema_url
		return within[0] == 1<<3|delimited || within[0] == 2<<3|delimited || within[0] == 3<<3|delimited
	}
	return false
}

// frames reads messages that have their length before them.
type frames struct {
	raw     window // what they lie in
	start   int64  // offset of the current message
	size    int64  // of it, in bytes
	left    int64  // bytes of it that are not read
	chunk   int64  // bytes that are given at once
	cut     bool   // the stream ended within it
	zstd    bool   // it is compressed
	unzstd  *zstd.Decoder
	problem string // what is wrong with its compression; empty when nothing
}

// Read reads the current message as it stands in the stream.
func (f *frames) Read(p []byte) (int, error) {
	if f.left == 0 {
		return 0, io.EOF
	}
	v := &f.raw
	if v.r == v.w {
		if _, ok := v.more(max(0, v.r-tailBytes)); !ok {
			f.cut = true
			return 0, io.ErrUnexpectedEOF
		}
	}
	n := copy(p[:min(int64(len(p)), f.left, f.chunk)], v.buf[v.r:v.w])
	f.chunk = min(2*f.chunk, readBuffer)
	v.r += n
	f.left -= int64(n)
	return n, nil
}

// unpacked reads the current message decompressed.
type unpacked struct{ *frames }

// Read implements io.Reader. Damage is an end, of which problem tells.
func (u unpacked) Read(p []byte) (int, error) {
	n, err := u.unzstd.Read(p)
	switch {
	case err == nil || errors.Is(err, io.EOF):
		return n, err
	case u.cut:
	case errors.Is(err, zstd.ErrWindowSizeExceeded) || errors.Is(err, zstd.ErrDecoderSizeExceeded):
		u.problem = "the message needs a zstd window that is too large"
	case errors.Is(err, io.ErrUnexpectedEOF):
		u.problem = "zstd data is cut short"
	default:
		u.problem = "zstd data is damaged"
	}
	return n, io.EOF
}

// open makes the message behind the next length the current one and gives what reads it.
func (f *frames) open(length uint32) (io.Reader, error) {
	f.size, f.left, f.start = int64(length), int64(length), f.raw.at()
	f.chunk, f.cut, f.problem = firstChunk, false, ""
	f.zstd = length > uint32(len(zstdMagic)) && bytes.Equal(f.raw.fill(len(zstdMagic)), zstdMagic)
	if !f.zstd {
		return f, nil
	}
	if f.unzstd == nil {
		z, err := zstd.NewReader(nil, zstd.WithDecoderConcurrency(1), zstd.WithDecoderLowmem(true),
			zstd.WithDecoderMaxWindow(input.MaxWindow))
		if err != nil {
			return nil, err
		}
		f.unzstd = z
	}
	return unpacked{f}, f.unzstd.Reset(f)
}

// close lets the decoder go.
func (f *frames) close() {
	if f.unzstd != nil {
		f.unzstd.Close()
		f.unzstd = nil
	}
}

// resume finds the next message behind damage: at the end of the current one if its length was right,
// else where a length with a message behind it stands.
func (f *frames) resume() {
	v := &f.raw
	end := v.at() + f.left
	if f.left <= lookAhead {
		if b := v.fill(int(f.left) + headerBytes); int64(len(b)) == f.left || int64(len(b)) > f.left && startsMessage(b[f.left:], false) {
			v.r += int(f.left)
			f.left = 0
			return
		}
	}
	if f.zstd { // the decoder may have read the next length to tell that no frame starts there
		v.r -= min(v.r, tailBytes, int(v.at()-f.start))
	}
	f.left = 0
	for {
		b := v.fill(headerBytes)
		if len(b) == 0 || startsMessage(b, v.at() != end) || v.at() == end && len(b) < prefixLen+2 {
			return
		}
		v.r++
	}
}

// header reads the next length. What is not 0 was read; with 0, ended tells that there is no more, and
// some that it ended within a length.
func (f *frames) header() (length uint32, ended, some bool) {
	v := &f.raw
	for {
		b := v.fill(prefixLen)
		if len(b) < prefixLen {
			v.r = v.w
			return 0, true, len(bytes.Trim(b, "\x00")) > 0
		}
		if length = binary.BigEndian.Uint32(b); length != 0 {
			v.r += prefixLen
			return length, false, false
		}
		f.padding()
	}
}

// padding passes NULs, of which the last may belong to a length.
func (f *frames) padding() {
	v := &f.raw
	for {
		b := v.fill(headerBytes)
		if len(b) == 0 || b[0] != 0 || startsMessage(b, true) {
			return
		}
		v.r++
	}
}
