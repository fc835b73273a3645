package evidence

import (
	"bytes"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"html"
	"io"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"sync"
)

// Mask stands where a secret was.
const Mask = "[redacted]"

// Redactor removes secrets from text before it reaches evidence, logs, errors or telemetry (SA-5).
// It knows the secrets that it was given, in their plain, URL-escaped, JSON-escaped, HTML-escaped,
// hexadecimal and base64 forms, and recognises what looks like a credential. The zero value
// recognises the patterns only. It is safe for concurrent use.
type Redactor struct {
	mu      sync.RWMutex
	forms   []string // longest first, so that no form hides a part of another
	short   []*regexp.Regexp
	replace *strings.Replacer
	longest int
}

// shortest is the least length of a form that is replaced wherever it occurs; a shorter secret is
// replaced where it stands as a word of its own, or every "1" of a report would go.
const shortest = 4

// NewRedactor makes a Redactor that knows these secrets.
func NewRedactor(secrets ...string) *Redactor {
	r := &Redactor{}
	r.Add(secrets...)
	return r
}

// Add makes secrets known. Empty ones are ignored. A secret of several lines is also known line by
// line, as output is often read by lines.
func (r *Redactor) Add(secrets ...string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, s := range secrets {
		r.add(s)
		if strings.ContainsAny(s, "\r\n") {
			for _, line := range strings.FieldsFunc(s, func(c rune) bool { return c == '\n' || c == '\r' }) {
				if len(line) >= 2*shortest {
					r.add(line)
				}
			}
		}
	}
	slices.SortFunc(r.forms, func(a, b string) int {
		if len(a) != len(b) {
			return len(b) - len(a)
		}
		return strings.Compare(a, b)
	})
	r.forms = slices.Compact(r.forms)
	pairs := make([]string, 0, 2*len(r.forms))
	for _, f := range r.forms {
		pairs = append(pairs, f, Mask)
		r.longest = max(r.longest, len(f))
	}
	r.replace = strings.NewReplacer(pairs...)
}

func (r *Redactor) add(s string) {
	if s == "" || strings.Contains(Mask, s) {
		return
	}
	for _, f := range formsOf(s) {
		if len(f) < shortest {
			r.short = append(r.short, regexp.MustCompile(`(^|[^0-9A-Za-z])`+regexp.QuoteMeta(f)+`($|[^0-9A-Za-z])`))
			continue
		}
		r.forms = append(r.forms, f)
	}
}

// formsOf gives the ways in which s may be written.
func formsOf(s string) []string {
	forms := []string{s, url.QueryEscape(s), url.PathEscape(s), html.EscapeString(s)}
	if quoted, err := json.Marshal(s); err == nil {
		forms = append(forms, string(quoted[1:len(quoted)-1]))
	}
	var plain bytes.Buffer
	enc := json.NewEncoder(&plain)
	enc.SetEscapeHTML(false)
	if enc.Encode(s) == nil {
		forms = append(forms, strings.Trim(strings.TrimSuffix(plain.String(), "\n"), `"`))
	}
	if len(s) >= shortest {
		forms = append(forms, hex.EncodeToString([]byte(s)), strings.ToUpper(hex.EncodeToString([]byte(s))))
	}
	return append(forms, base64Forms(s)...)
}

// base64Forms gives what s looks like inside base64 text: alone, and as a part of something longer
// ("user:secret"), where it may start at any of three offsets. Of those only the characters are
// known that s alone decides.
func base64Forms(s string) []string {
	var out []string
	for _, e := range []*base64.Encoding{base64.RawStdEncoding, base64.RawURLEncoding} {
		if len(s) >= shortest {
			out = append(out, e.EncodeToString([]byte(s)))
		}
		for offset := range 3 {
			text := e.EncodeToString(append(make([]byte, offset), s...))
			from := (offset*8 + 5) / 6
			to := (offset + len(s)) * 8 / 6
			if to-from >= 2*shortest {
				out = append(out, text[from:to])
			}
		}
	}
	return out
}

const (
	secretHeader = `(?i)((?:proxy-)?authorization|(?:set-)?cookie|x-api-key|x-auth-token|x-amz-security-token)`
	secretName   = `(?i)([\w.-]*(?:token|password|passwd|passphrase|pwd|secret|api[_-]?key|apikey|access[_-]?key|private[_-]?key|credentials?|signature|sig|session[_-]?id))`
)

// rule is one pattern of what looks like a credential. Each keeps what is not secret.
type rule struct {
	find *regexp.Regexp
	with string
}

// rules are read-only. A rule whose result it would find again gives the same result again, so that
// redacting twice changes nothing.
var rules = []rule{
	// "Authorization": "Bearer ..." up to the closing quote; then, without quotes, up to the line's end.
	{regexp.MustCompile(secretHeader + `(\\?["']\s*[:=]\s*\[?\\?["'])(?:[^"'\\\r\n]|\\[^"'\r\n])*`), "${1}${2}" + Mask},
	{regexp.MustCompile(secretHeader + `(\s*[:=]\s*)[^\r\n]+`), "${1}${2}" + Mask},
	// Database URLs may hold unescaped '/' and '?' in the password: up to the last '@' of the word.
	{regexp.MustCompile(`(?i)\b((?:postgres(?:ql)?|mysql|mariadb|mongodb(?:\+srv)?|rediss?|amqps?|sqlserver|clickhouse|cockroachdb|nats)://)[^\s"'<>]*@`), "${1}" + Mask + "@"},
	{regexp.MustCompile(`(?i)\b([a-z][a-z0-9+.-]*://)[^\s/?#"'<>]*@`), "${1}" + Mask + "@"},
	{regexp.MustCompile(`[^\s:/@"'<>]+:[^\s@"'<>]+@((?:tcp|unix)\()`), Mask + "@${1}"},
	{regexp.MustCompile(secretName + `(\\?["']?\s*[=:]\s*)(\\?")(?:[^"\\\r\n]|\\[^"\r\n])*`), "${1}${2}${3}" + Mask},
	{regexp.MustCompile(secretName + `(\\?["']?\s*[=:]\s*')[^'\r\n]*`), "${1}${2}" + Mask},
	{regexp.MustCompile(secretName + `(\\?["']?\s*[=:]\s*)[^&\s"'<>;,#\\]+`), "${1}${2}" + Mask},
	// --password hunter2, and a token written where the name of one belongs
	{regexp.MustCompile(`(?i)((?:^|[^\w-])--?[\w-]*(?:token|password|passwd|secret|api[_-]?key)\s+)[^\s"'<>-][^\s"'<>]*`), "${1}" + Mask},
	{regexp.MustCompile(`(?i)\b((?:bearer|basic)\s*:\s*["']?)[^\s"'{}\[]+`), "${1}" + Mask},
	{regexp.MustCompile(`(?i)\b(bearer|basic)\s+[A-Za-z0-9._~+/=-]{16,}`), "${1} " + Mask},
	{regexp.MustCompile(`\beyJ[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]+(?:\.[A-Za-z0-9_-]*)?`), Mask},
}

// String gives s without its secrets.
func (r *Redactor) String(s string) string {
	if r != nil {
		r.mu.RLock()
		replace, short := r.replace, r.short
		r.mu.RUnlock()
		if replace != nil {
			s = replace.Replace(s)
		}
		for _, re := range short {
			s = re.ReplaceAllString(s, "${1}"+Mask+"${2}")
		}
	}
	for _, rule := range rules {
		s = rule.find.ReplaceAllStringFunc(s, func(found string) string {
			if reference.MatchString(found) {
				return found
			}
			return rule.find.ReplaceAllString(found, rule.with)
		})
	}
	return s
}

// reference is a field whose value is nothing but the name of where the secret is.
var reference = regexp.MustCompile(`^[^:="']+\\?["']?\s*[:=]\s*\\?["']?\$\{env:\w+\}[\s"'}\]\\]*$`)

// Error gives an error whose text has no secret; nil stays nil.
func (r *Redactor) Error(err error) error {
	if err == nil {
		return nil
	}
	return redacted{text: r.String(err.Error())}
}

// redacted is text only: a wrapped cause could be printed with its secret.
type redacted struct{ text string }

func (e redacted) Error() string { return e.text }

// Writer is a redacting writer. It holds text back until its line is complete, so that a secret
// which is split over writes is found; Close writes what is held.
type Writer struct {
	mu     sync.Mutex
	redact *Redactor
	w      io.Writer
	held   []byte
	err    error
}

// Writer wraps w.
func (r *Redactor) Writer(w io.Writer) *Writer { return &Writer{redact: r, w: w} }

// The bounds of a line without an end: of more than maxHeld bytes all but the last overlap are
// written, which still finds each secret that is not longer than overlap.
const (
	maxHeld = 64 << 10
	overlap = 8 << 10
)

// Write implements io.Writer. It reports len(p) unless writing has failed.
func (w *Writer) Write(p []byte) (int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.err != nil {
		return 0, w.err
	}
	n := len(p)
	for len(p) > 0 {
		k := min(len(p), maxHeld)
		w.held = append(w.held, p[:k]...)
		p = p[k:]
		if i := bytes.LastIndexByte(w.held, '\n'); i >= 0 {
			w.emit(w.redact.String(string(w.held[:i+1])))
			w.held = append(w.held[:0], w.held[i+1:]...)
		}
		w.shorten()
	}
	if w.err != nil {
		return 0, w.err
	}
	return n, nil
}

// shorten bounds what is held of a line that does not end.
func (w *Writer) shorten() {
	if len(w.held) <= maxHeld {
		return
	}
	text := w.redact.String(string(w.held))
	keep := overlap
	if w.redact != nil {
		w.redact.mu.RLock()
		keep = max(keep, w.redact.longest)
		w.redact.mu.RUnlock()
	}
	cut := max(0, len(text)-keep)
	w.emit(text[:cut])
	w.held = append(w.held[:0], text[cut:]...)
}

func (w *Writer) emit(s string) {
	if w.err == nil && s != "" {
		_, w.err = io.WriteString(w.w, s)
	}
}

// Close writes what is held. It does not close the writer below.
func (w *Writer) Close() error {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.emit(w.redact.String(string(w.held)))
	w.held = nil
	return w.err
}
