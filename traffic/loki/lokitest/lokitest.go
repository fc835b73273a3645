// Package lokitest is a server that answers as Loki does, and as VictoriaLogs does, in memory: with
// half-open ranges, one limit over all streams, streams that are each in order and together are not,
// and the errors that either gives. For tests.
package lokitest

import (
	"bytes"
	"cmp"
	"compress/gzip"
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"
)

// Entry is one log entry. Metadata is its structured metadata.
type Entry struct {
	Time     int64 // nanoseconds since 1970
	Line     string
	Metadata map[string]string
}

// Stream is the entries of one set of labels, in any order.
type Stream struct {
	Labels  map[string]string
	Entries []Entry
}

// Server is an http.Handler. Its fields are set before it serves.
type Server struct {
	Streams []Stream

	MaxEntries int           // max_entries_limit_per_query; 0: 5000
	MaxRange   time.Duration // max_query_length; 0: any
	SilentCap  int           // gives no more than this and does not say so; 0: gives what is asked for
	Tenant     string        // the X-Scope-OrgID that is required; empty: none is
	User       string        // of basic authentication; empty: none is required
	Password   string
	Bearer     string // empty: none is required
	Plain      bool   // never compresses

	// Before is called with the number of each request, from 1; an answer of true means that it has
	// answered.
	Before func(n int, w http.ResponseWriter, r *http.Request) bool

	mu   sync.Mutex
	seen []*http.Request
}

// Requests are those that came, in order.
func (s *Server) Requests() []*http.Request {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.seen)
}

// ServeHTTP implements http.Handler.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	s.seen = append(s.seen, r)
	n := len(s.seen)
	s.mu.Unlock()
	if s.Before != nil && s.Before(n, w, r) {
		return
	}
	s.Answer(w, r)
}

// Answer answers a request without asking Before.
func (s *Server) Answer(w http.ResponseWriter, r *http.Request) {
	if status, words := s.admit(r); status != 0 {
		http.Error(w, words, status)
		return
	}
	switch r.URL.Path {
	case "/loki/api/v1/query_range":
		s.queryRange(w, r)
	case "/select/logsql/query":
		s.victoria(w, r)
	default:
		http.NotFound(w, r)
	}
}

// admit refuses a request without the credentials that are required.
func (s *Server) admit(r *http.Request) (int, string) {
	user, password, _ := r.BasicAuth()
	switch {
	case s.User != "" && (user != s.User || password != s.Password):
		return http.StatusUnauthorized, "invalid username or password"
	case s.Bearer != "" && r.Header.Get("Authorization") != "Bearer "+s.Bearer:
		return http.StatusForbidden, "permission denied"
	case s.Tenant != "" && r.Header.Get("X-Scope-OrgID") == "":
		return http.StatusUnauthorized, "no org id"
	}
	return 0, ""
}

// found is an entry with the labels of its stream.
type found struct {
	Entry
	labels map[string]string
}

func (s *Server) queryRange(w http.ResponseWriter, r *http.Request) {
	q := r.URL.Query()
	start, err1 := strconv.ParseInt(q.Get("start"), 10, 64)
	end, err2 := strconv.ParseInt(q.Get("end"), 10, 64)
	limit, err3 := strconv.Atoi(cmp.Or(q.Get("limit"), "100"))
	if err1 != nil || err2 != nil || err3 != nil {
		http.Error(w, "could not parse a parameter", http.StatusBadRequest)
		return
	}
	match, words := selector(q.Get("query"))
	most := cmp.Or(s.MaxEntries, 5000)
	switch length := time.Duration(end - start); {
	case words != "":
		http.Error(w, words, http.StatusBadRequest)
	case limit > most:
		// as Loki does, without the end of a line
		w.WriteHeader(http.StatusBadRequest)
		_, _ = fmt.Fprintf(w, "max entries limit per query exceeded, limit > max_entries_limit_per_query (%d > %d)", limit, most)
	case s.MaxRange > 0 && length > s.MaxRange:
		http.Error(w, fmt.Sprintf("the query time range exceeds the limit (query length: %v, limit: %v)", length, s.MaxRange), http.StatusBadRequest)
	case match == nil:
		s.write(w, r, []byte(`{"status":"success","data":{"resultType":"matrix","result":[{"metric":{},"values":[[1548116820,"82"]]}],"stats":{}}}`))
	default:
		backward := !strings.EqualFold(q.Get("direction"), "forward")
		s.streams(w, r, s.cut(s.pick(match, start, end), limit, backward), backward)
	}
}

// pick gives the entries of [start, end) in the streams that match.
func (s *Server) pick(match map[string]string, start, end int64) []found {
	var out []found
	for _, stream := range s.Streams {
		fits := true
		for name, value := range match {
			fits = fits && stream.Labels[name] == value
		}
		for _, e := range stream.Entries {
			if fits && e.Time >= start && e.Time < end {
				out = append(out, found{e, stream.Labels})
			}
		}
	}
	return out
}

// cut sorts entries by time and keeps up to limit.
func (s *Server) cut(all []found, limit int, backward bool) []found {
	slices.SortStableFunc(all, func(a, b found) int {
		if backward {
			a, b = b, a
		}
		return cmp.Compare(a.Time, b.Time)
	})
	if s.SilentCap > 0 {
		limit = min(limit, s.SilentCap)
	}
	return all[:min(limit, len(all))]
}

// streams writes entries grouped by their labels, to which structured metadata belongs unless the
// request can tell them apart.
func (s *Server) streams(w http.ResponseWriter, r *http.Request, entries []found, backward bool) {
	type stream struct {
		Stream map[string]string `json:"stream"`
		Values []any             `json:"values"`
	}
	apart := strings.Contains(r.Header.Get("X-Loki-Response-Encoding-Flags"), "categorize-labels")
	groups := map[string]*stream{}
	for _, e := range entries {
		labels, value := maps.Clone(e.labels), []any{strconv.FormatInt(e.Time, 10), e.Line}
		if labels == nil {
			labels = map[string]string{}
		}
		if apart {
			extra := map[string]any{}
			if len(e.Metadata) > 0 {
				extra["structuredMetadata"] = e.Metadata
			}
			value = append(value, extra)
		} else {
			maps.Copy(labels, e.Metadata)
		}
		name := fmt.Sprint(labels) // maps are printed in the order of their keys
		if groups[name] == nil {
			groups[name] = &stream{Stream: labels}
		}
		groups[name].Values = append(groups[name].Values, value)
	}
	data := map[string]any{"resultType": "streams", "stats": map[string]any{"summary": map[string]any{"totalLinesProcessed": len(entries)}}}
	if apart {
		data["encodingFlags"] = []string{"categorize-labels"}
	}
	result := []*stream{}
	for _, name := range slices.Sorted(maps.Keys(groups)) {
		result = append(result, groups[name])
	}
	data["result"] = result
	text, err := json.Marshal(map[string]any{"status": "success", "data": data})
	if err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	s.write(w, r, text)
}

// write sends an answer, compressed where that is wanted.
func (s *Server) write(w http.ResponseWriter, r *http.Request, text []byte) {
	w.Header().Set("Content-Type", "application/json; charset=UTF-8")
	if !s.Plain && strings.Contains(r.Header.Get("Accept-Encoding"), "gzip") {
		w.Header().Set("Content-Encoding", "gzip")
		var packed bytes.Buffer
		z, _ := gzip.NewWriterLevel(&packed, gzip.BestSpeed)
		_, _ = z.Write(text) // to memory
		_ = z.Close()
		text = packed.Bytes()
	}
	w.Header().Set("Content-Length", strconv.Itoa(len(text)))
	_, _ = w.Write(text) // a client that has gone is its own affair
}

// selector reads {name="value", ...}; nil for a function over one, words for what is neither.
func selector(query string) (match map[string]string, words string) {
	query = strings.TrimSpace(query)
	if strings.Contains(query, "_over_time(") || strings.HasPrefix(query, "rate(") {
		return nil, ""
	}
	inner, ok := strings.CutPrefix(query, "{")
	inner, closed := strings.CutSuffix(inner, "}")
	wrong := fmt.Sprintf("parse error at line 1, col %d: syntax error: unexpected IDENTIFIER", len(query))
	if !ok || !closed || strings.TrimSpace(inner) == "" {
		return nil, wrong
	}
	match = map[string]string{}
	for part := range strings.SplitSeq(inner, ",") {
		name, value, ok := strings.Cut(strings.TrimSpace(part), "=")
		plain, err := strconv.Unquote(value)
		if !ok || err != nil {
			return nil, wrong
		}
		match[name] = plain
	}
	return match, ""
}
