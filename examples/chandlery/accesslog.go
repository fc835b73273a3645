package main

import (
	"bufio"
	"io"
	"net/url"
	"strconv"
	"strings"
	"sync"
	"time"
)

// accessLog writes NCSA combined lines, as NGINX and Apache httpd do.
type accessLog struct {
	mu   sync.Mutex
	file io.WriteCloser
	buf  *bufio.Writer
	last time.Time // of the last flush
}

func newAccessLog(file io.WriteCloser) sink {
	return &accessLog{file: file, buf: bufio.NewWriterSize(file, 64<<10)}
}

// record implements sink. Lines are flushed at least once a second while requests come in.
func (a *accessLog) record(s *served) {
	line := combined(s)
	a.mu.Lock()
	defer a.mu.Unlock()
	if _, err := a.buf.WriteString(line); err != nil {
		return // the buffer keeps the error, and Close gives it
	}
	if s.end.Sub(a.last) >= time.Second {
		a.last = s.end
		_ = a.buf.Flush() // as above
	}
}

// Close implements sink.
func (a *accessLog) Close() error {
	a.mu.Lock()
	defer a.mu.Unlock()
	return joinClose(a.buf.Flush(), a.file)
}

// combined is one line: host ident user [time] "request" status bytes "referer" "agent". The time is
// the end of the request, as in NGINX.
func combined(s *served) string {
	bytes := strconv.FormatInt(s.bytes, 10)
	if s.bytes == 0 {
		bytes = "-"
	}
	fields := []string{
		s.client, "-", orDash(url.PathEscape(s.user)), s.end.Format("[02/Jan/2006:15:04:05 -0700]"),
		quote(s.method + " " + s.target + " HTTP/" + s.proto), strconv.Itoa(s.status), bytes,
		quote(orDash(s.referer)), quote(orDash(s.agent)),
	}
	return strings.Join(fields, " ") + "\n"
}

// orDash is the dash that stands for an absent field.
func orDash(s string) string {
	if s == "" {
		return "-"
	}
	return s
}

// quote escapes as NGINX does: quotes, backslashes and everything outside printable ASCII become \xHH.
func quote(s string) string {
	const hex = "0123456789ABCDEF"
	var b strings.Builder
	b.WriteByte('"')
	for i := range len(s) {
		if c := s[i]; c < ' ' || c > '~' || c == '"' || c == '\\' {
			b.WriteString(`\x`)
			b.WriteByte(hex[c>>4])
			b.WriteByte(hex[c&15])
		} else {
			b.WriteByte(c)
		}
	}
	b.WriteByte('"')
	return b.String()
}
