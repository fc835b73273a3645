package record

import (
	"bytes"
	"compress/zlib"
	"encoding/base64"
	"encoding/binary"
	"fmt"
	"io"
	"math"
	"strings"
	"time"
)

// LogEntry is one line of an HdrHistogram log.
type LogEntry struct {
	Tag             string // what the histogram is of; what a log's tag cannot hold is percent-encoded
	StartSeconds    float64
	IntervalSeconds float64 // StartSeconds is from the start of the run
	Histogram       *Histogram
}

// WriteLog writes an HdrHistogram log, version 1.3: intervals of V2-encoded histograms that the
// usual tools read (http://hdrhistogram.org). Interval maxima are in milliseconds, values in
// nanoseconds.
func WriteLog(w io.Writer, start time.Time, entries []LogEntry) error {
	unix := float64(start.UnixMilli()) / 1000
	_, err := fmt.Fprintf(w, "#[Histogram log format version 1.3]\n#[BaseTime: %.3f (seconds since epoch)]\n#[StartTime: %.3f (seconds since epoch), %s]\n"+
		"\"StartTimestamp\",\"Interval_Length\",\"Interval_Max\",\"Interval_Compressed_Histogram\"\n",
		unix, unix, start.UTC().Format(time.RFC3339))
	if err != nil {
		return err
	}
	for _, e := range entries {
		if e.Histogram == nil {
			continue
		}
		payload, err := e.Histogram.encode()
		if err != nil {
			return err
		}
		tag := ""
		if e.Tag != "" {
			tag = "Tag=" + logTag(e.Tag) + ","
		}
		if _, err = fmt.Fprintf(w, "%s%.3f,%.3f,%.3f,%s\n", tag, e.StartSeconds, e.IntervalSeconds,
			float64(e.Histogram.Max())/1e6, payload); err != nil {
			return err
		}
	}
	return nil
}

// logTag makes a tag of a name: a comma, a space or a control character would end it.
func logTag(name string) string {
	var b strings.Builder
	for _, c := range []byte(name) {
		if c <= ' ' || c == ',' || c == 0x7f {
			fmt.Fprintf(&b, "%%%02X", c)
		} else {
			b.WriteByte(c)
		}
	}
	return b.String()
}

// The cookies of the V2 encoding and of its compressed form, word size 1 (LEB128) in bits 4 to 7.
const (
	cookieV2         = 0x1c849303 | 0x10
	cookieV2Deflated = 0x1c849304 | 0x10
)

// encode gives the V2 compressed encoding in base64: cookie, length, and zlib over the header (cookie,
// length of the counts, normalising offset, digits, lowest and highest value, conversion ratio, all
// big-endian) and the counts, zigzag LEB128, a negative number standing for a run of zeros.
func (h *Histogram) encode() (string, error) {
	counts := h.encodeCounts()
	digits := uint32(3)
	if h.coarse {
		digits = 2
	}
	head := binary.BigEndian.AppendUint32(nil, cookieV2)
	head = binary.BigEndian.AppendUint32(head, uint32(len(counts)))
	head = binary.BigEndian.AppendUint32(head, 0)
	head = binary.BigEndian.AppendUint32(head, digits)
	head = binary.BigEndian.AppendUint64(head, 1)
	head = binary.BigEndian.AppendUint64(head, uint64(MaxValue))
	head = binary.BigEndian.AppendUint64(head, math.Float64bits(1))

	var z bytes.Buffer
	w := zlib.NewWriter(&z)
	if _, err := w.Write(append(head, counts...)); err != nil {
		return "", err
	}
	if err := w.Close(); err != nil {
		return "", err
	}
	out := binary.BigEndian.AppendUint32(nil, cookieV2Deflated)
	out = binary.BigEndian.AppendUint32(out, uint32(z.Len()))
	return base64.StdEncoding.EncodeToString(append(out, z.Bytes()...)), nil
}

func (h *Histogram) encodeCounts() []byte {
	var out []byte
	next := 0
	for slot, n := range h.cells.all() {
		switch zeros := slot - next; {
		case zeros == 1:
			out = appendZigZag(out, 0)
		case zeros > 1:
			out = appendZigZag(out, int64(-zeros))
		}
		out = appendZigZag(out, int64(min(n, math.MaxInt64)))
		next = slot + 1
	}
	return out
}

// appendZigZag is the format's own LEB128: seven bits a byte, low first, but the ninth byte, if it
// comes to that, carries eight.
func appendZigZag(b []byte, v int64) []byte {
	u := uint64(v<<1) ^ uint64(v>>63)
	for range 8 {
		if u < 0x80 {
			return append(b, byte(u))
		}
		b = append(b, byte(u)|0x80)
		u >>= 7
	}
	return append(b, byte(u))
}
