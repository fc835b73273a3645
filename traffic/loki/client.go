package loki

import (
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/klauspost/compress/gzip"
)

// maxAnswer is the most of one answer that is read, in bytes after decompression: its labels and
// statistics may be far larger than its lines.
const maxAnswer = 8 * maxPage

// refusal is an answer of another status than 200.
type refusal struct {
	status int
	words  string        // the server's own, fit to be shown
	after  time.Duration // that the server asks for before the next attempt
}

// Error implements error.
func (r *refusal) Error() string {
	if r.words == "" {
		return fmt.Sprintf("status %d", r.status)
	}
	return fmt.Sprintf("status %d: %s", r.status, r.words)
}

// elsewhere is a redirect to another origin, which is not followed.
type elsewhere string

// Error implements error.
func (e elsewhere) Error() string { return "redirected to " + string(e) }

// client asks one server. It is used by one goroutine.
type client struct {
	config   *Config
	http     *http.Client
	endpoint *url.URL
	header   http.Header
	unzip    *gzip.Reader
	decoder  decoder
	asked    int64 // requests sent
	retried  int64 // of those, again
}

func newClient(c *Config) (*client, error) {
	endpoint, err := c.endpoint()
	if err != nil {
		return nil, err
	}
	dial := c.Dial
	if dial == nil {
		dial = (&net.Dialer{Timeout: 10 * time.Second}).DialContext
	}
	out := &client{config: c, endpoint: endpoint, header: c.headers()}
	out.http = &http.Client{
		// No proxy: what is asked for is asked of the server that was named, and of nobody else.
		Transport: &http.Transport{
			DialContext: dial, TLSClientConfig: c.TLS, TLSHandshakeTimeout: 10 * time.Second,
			DisableCompression: true, ForceAttemptHTTP2: true, MaxIdleConns: 1, IdleConnTimeout: time.Minute,
			MaxResponseHeaderBytes: 64 << 10,
		},
		CheckRedirect: func(next *http.Request, via []*http.Request) error {
			if next.URL.Scheme != endpoint.Scheme || next.URL.Host != endpoint.Host || len(via) > 3 {
				return elsewhere(printable(next.URL.Scheme+"://"+next.URL.Host, 200))
			}
			return nil
		},
	}
	return out, nil
}

// headers are those of every request.
func (c *Config) headers() http.Header {
	h := http.Header{"Accept": {"application/json"}, "Accept-Encoding": {"gzip"}, "User-Agent": {"seatrial/1"}}
	switch {
	case c.Bearer != "":
		h.Set("Authorization", "Bearer "+string(c.Bearer))
	case c.User != "":
		r := http.Request{Header: h}
		r.SetBasicAuth(c.User, string(c.Password))
	}
	if c.Backend == VictoriaLogs {
		if account, project, _ := strings.Cut(c.Tenant, ":"); account != "" {
			h.Set("AccountID", account)
			h.Set("ProjectID", project)
			if project == "" {
				h.Set("ProjectID", "0")
			}
		}
		return h
	}
	// Structured metadata then stays with its entry, rather than making a stream of each.
	h.Set("X-Loki-Response-Encoding-Flags", "categorize-labels")
	if c.Tenant != "" {
		h.Set("X-Scope-OrgID", c.Tenant)
	}
	return h
}

// params are those of one page: up to limit entries of [start, end), in nanoseconds since 1970, the
// earliest.
func (c *Config) params(start, end int64, limit int) url.Values {
	v := url.Values{}
	if c.Backend == VictoriaLogs {
		const exact = "2006-01-02T15:04:05.000000000Z"
		v.Set("query", c.Query+" | sort by (_time) limit "+strconv.Itoa(limit))
		v.Set("start", time.Unix(0, start).UTC().Format(exact))
		v.Set("end", time.Unix(0, end).UTC().Format(exact))
		return v
	}
	v.Set("query", c.Query)
	v.Set("start", strconv.FormatInt(start, 10))
	v.Set("end", strconv.FormatInt(end, 10))
	v.Set("limit", strconv.Itoa(limit))
	v.Set("direction", "forward")
	return v
}

// ask fills a page, in as many attempts as it takes and are allowed.
func (c *client) ask(ctx context.Context, start, end int64, limit int, into *page) error {
	u := *c.endpoint
	u.RawQuery = c.config.params(start, end, limit).Encode()
	attempts := c.config.Attempts
	if attempts == 0 {
		attempts = DefaultAttempts
	}
	for n := 1; ; n++ {
		c.asked++
		err := c.attempt(ctx, &u, into)
		switch {
		case err == nil:
			return nil
		case ctx.Err() != nil:
			return context.Cause(ctx)
		case !passing(err):
			return err
		case n >= attempts:
			return &tired{n, err}
		}
		c.retried++
		pause := time.NewTimer(wait(n, err))
		select {
		case <-ctx.Done():
			pause.Stop()
			return context.Cause(ctx)
		case <-pause.C:
		}
	}
}

// tired is a failure that stayed.
type tired struct {
	attempts int
	last     error
}

// Error implements error.
func (t *tired) Error() string { return fmt.Sprintf("%v (%d attempts)", t.last, t.attempts) }

// Unwrap gives the last failure.
func (t *tired) Unwrap() error { return t.last }

// wait is how long to wait after attempt n: half of it by chance, so that many who were refused
// together do not come back together.
func wait(n int, err error) time.Duration {
	d := min(firstWait<<min(n-1, 16), maxWait)
	d = d/2 + rand.N(d/2+1)
	if r, ok := errors.AsType[*refusal](err); ok {
		d = max(d, min(r.after, maxRetryAfter))
	}
	return d
}

// passing tells whether another attempt may go better.
func passing(err error) bool {
	if r, ok := errors.AsType[*refusal](err); ok {
		if tooMany(r) || tooWide(r) {
			return false
		}
		return r.status == http.StatusTooManyRequests || r.status >= 500 && r.status != http.StatusNotImplemented
	}
	for _, lasting := range [...]bool{
		is[elsewhere](err), is[malformed](err), is[notLogs](err), is[said](err), errors.Is(err, errTooLarge),
		is[*tls.CertificateVerificationError](err), is[tls.RecordHeaderError](err),
	} {
		if lasting {
			return false
		}
	}
	return true
}

func is[E error](err error) bool {
	_, ok := errors.AsType[E](err)
	return ok
}

// attempt asks once.
func (c *client) attempt(ctx context.Context, u *url.URL, into *page) error {
	into.reset()
	timeout := c.config.Timeout
	if timeout == 0 {
		timeout = DefaultTimeout
	}
	ctx, cancel := context.WithTimeoutCause(ctx, timeout, fmt.Errorf("no whole answer within %v", timeout))
	defer cancel()
	r, err := http.NewRequestWithContext(ctx, "GET", u.String(), nil)
	if err != nil {
		return err
	}
	r.Header = c.header.Clone()
	answer, err := c.http.Do(r)
	if err != nil {
		return because(ctx, err)
	}
	defer func() { _ = answer.Body.Close() }() // what matters was read
	body, err := c.plain(answer)
	if err != nil {
		return because(ctx, err)
	}
	if answer.StatusCode != http.StatusOK {
		return c.refusal(answer, body)
	}
	return because(ctx, c.decode(body, into))
}

// because replaces "context deadline exceeded" by what it means, and takes the URL out of an error:
// it is long, and the server is named anyway.
func because(ctx context.Context, err error) error {
	if err == nil {
		return nil
	}
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	if e, ok := errors.AsType[*url.Error](err); ok {
		return e.Err
	}
	return err
}

// plain gives the body decompressed.
func (c *client) plain(answer *http.Response) (io.Reader, error) {
	if !strings.EqualFold(answer.Header.Get("Content-Encoding"), "gzip") {
		return answer.Body, nil
	}
	var err error
	if c.unzip == nil {
		c.unzip, err = gzip.NewReader(answer.Body)
	} else {
		err = c.unzip.Reset(answer.Body)
	}
	if err != nil {
		return nil, fmt.Errorf("the answer's compression is damaged: %w", err)
	}
	return c.unzip, nil
}

// decode reads an answer of status 200.
func (c *client) decode(body io.Reader, into *page) error {
	bounded := &io.LimitedReader{R: body, N: maxAnswer}
	c.decoder.page = into
	c.decoder.reset(bounded, nil)
	var err error
	if c.config.Backend == VictoriaLogs {
		err = c.decoder.rows()
	} else if err = c.decoder.queryRange(); err == nil {
		c.decoder.end() // so that the connection can be used again
	}
	if bounded.N <= 0 {
		return errTooLarge
	}
	if err == nil {
		err = c.decoder.err
	}
	return err
}

// refusal reads an answer of another status.
func (c *client) refusal(answer *http.Response, body io.Reader) error {
	r := &refusal{status: answer.StatusCode, after: retryAfter(answer.Header.Get("Retry-After"))}
	text, _ := io.ReadAll(io.LimitReader(body, 8<<10)) // a part of it is better than none
	var inner struct{ Error, Message string }
	switch {
	case strings.Contains(answer.Header.Get("Content-Type"), "html"):
		r.words = "a page of HTML, as a proxy may send it"
	case json.Unmarshal(text, &inner) == nil && inner.Error+inner.Message != "":
		r.words = inner.Error
		if r.words == "" {
			r.words = inner.Message
		}
	default:
		r.words = string(text)
	}
	for _, secret := range []Secret{c.config.Password, c.config.Bearer} {
		if secret != "" {
			r.words = strings.ReplaceAll(r.words, string(secret), secret.String())
		}
	}
	r.words = printable(r.words, 400)
	return r
}

// retryAfter reads the header of that name: seconds, or a date.
func retryAfter(value string) time.Duration {
	if seconds, err := strconv.ParseUint(value, 10, 31); err == nil {
		return time.Duration(seconds) * time.Second
	}
	if at, err := http.ParseTime(value); err == nil {
		return max(0, time.Until(at))
	}
	return 0
}

// tooMany tells whether the server allows fewer entries at once.
func tooMany(r *refusal) bool { return strings.Contains(r.words, "max entries limit") }

// allowed reads the limit out of "... (9999 > 5000)"; 0 when it is not told.
func allowed(r *refusal) int {
	_, tail, _ := strings.Cut(r.words, "max entries limit")
	_, tail, _ = strings.Cut(tail, "(")
	_, tail, _ = strings.Cut(tail, ">")
	tail, _, _ = strings.Cut(tail, ")")
	n, err := strconv.Atoi(strings.TrimSpace(tail))
	if err != nil || n < 1 {
		return 0
	}
	return n
}

// tooWide tells whether the server allows only a shorter range of time, or fewer bytes to be searched.
func tooWide(r *refusal) bool {
	return strings.Contains(r.words, "query time range exceeds the limit") ||
		strings.Contains(r.words, "would read too many bytes") ||
		strings.Contains(r.words, "query too large to execute")
}
