package accesslog

import (
	"bytes"
	"strings"
)

// column is what a column of a W3C extended log holds.
type column uint8

const (
	colOther column = iota
	colDate
	colTime
	colMethod
	colStem
	colQuery
	colStatus
	colSent
	colReceived
	colMillis // of a duration
	colTaken  // of a duration: seconds or milliseconds
	colAgent
	colClient
	columns
)

// maxColumns is how many columns of a W3C log are looked at.
const maxColumns = 64

// table is what the directives of a W3C extended log say of the lines behind them.
type table struct {
	ready   bool // a #Fields line was read
	edge    bool // it is CloudFront's, which counts durations in seconds
	n       int
	columns [maxColumns]column
	date    [10]byte // of #Date, for lines that hold a time alone
}

// edgeFields are the columns of CloudFront's standard log, for a file that lost its first lines.
const edgeFields = "date time x-edge-location sc-bytes c-ip cs-method cs(Host) cs-uri-stem sc-status cs(Referer) " +
	"cs(User-Agent) cs-uri-query cs(Cookie) x-edge-result-type x-edge-request-id x-host-header cs-protocol cs-bytes time-taken"

// edgeLeast is how many columns CloudFront's log has at least.
const edgeLeast = 20

// directive reads a comment line, which in a W3C extended log may name columns or the day.
func (s *Source) directive(line []byte) {
	if fields, ok := bytes.CutPrefix(line, []byte("#Fields:")); ok {
		s.shapes.w3c++
		s.table.head(fields)
		return
	}
	if day, ok := bytes.CutPrefix(line, []byte("#Date:")); ok {
		day = bytes.TrimSpace(day)
		if len(day) >= len(s.table.date) {
			copy(s.table.date[:], day)
		}
	}
}

// head reads the names of the columns.
func (t *table) head(names []byte) {
	t.ready, t.edge, t.n = true, false, 0
	t.columns = [maxColumns]column{}
	for name := range bytes.FieldsSeq(names) {
		if t.n < maxColumns {
			t.columns[t.n] = columnOf(strings.ToLower(string(name)))
		}
		if string(name) == "x-edge-location" {
			t.edge = true
		}
		t.n++
	}
}

func columnOf(name string) column {
	switch name {
	case "date", "date-local":
		return colDate
	case "time", "time-local":
		return colTime
	case "cs-method":
		return colMethod
	case "cs-uri-stem", "cs-uri":
		return colStem
	case "cs-uri-query":
		return colQuery
	case "sc-status":
		return colStatus
	case "sc-bytes":
		return colSent
	case "cs-bytes":
		return colReceived
	case "time-taken":
		return colTaken
	case "timetakenms":
		return colMillis
	case "cs(user-agent)":
		return colAgent
	case "c-ip":
		return colClient
	}
	return colOther
}

// w3c reads a line of a W3C extended log as its #Fields line says, and one of CloudFront without such a
// line. Times are UTC, and when the request was done.
func (s *Source) w3c(line []byte) result {
	if len(line) == 0 || line[0] == '#' {
		return fewFields
	}
	tabs := bytes.IndexByte(line, '\t') >= 0
	if !s.table.ready {
		if !tabs || bytes.Count(line, []byte("\t")) < edgeLeast-1 || len(line) < 11 || line[10] != '\t' {
			return noLines
		}
		s.table.head([]byte(edgeFields))
		s.table.edge = true
	}
	var v [columns][]byte
	n := 0
	for b := line; len(b) > 0; n++ {
		var value []byte
		if value, b = cell(b, tabs); n < maxColumns && s.table.columns[n] != colOther {
			v[s.table.columns[n]] = value
		}
	}
	if n != s.table.n && !(s.table.edge && n >= edgeLeast-1) {
		return noColumns
	}
	return s.row(&v)
}

// cell cuts one value off a line: up to a tab, or up to spaces, where a quoted value ends at its quote
// and holds quotes doubled.
func cell(b []byte, tabs bool) (value, rest []byte) {
	if tabs {
		if i := bytes.IndexByte(b, '\t'); i >= 0 {
			return b[:i], b[i+1:]
		}
		return b, nil
	}
	end := 0
	if b[0] == '"' {
		end = 1
		for end < len(b) && (b[end] != '"' || end+1 < len(b) && b[end+1] == '"') {
			if b[end] == '"' {
				end++
			}
			end++
		}
		value, end = b[1:min(end, len(b))], min(end+1, len(b))
	} else if end = bytes.IndexByte(b, ' '); end < 0 {
		return b, nil
	} else {
		value = b[:end]
	}
	for rest = b[end:]; len(rest) > 0 && rest[0] == ' '; {
		rest = rest[1:]
	}
	return value, rest
}

// row makes an event of the values of a line.
func (s *Source) row(v *[columns][]byte) result {
	if !s.rowTime(v[colDate], v[colTime]) {
		return badTime
	}
	if len(v[colMethod]) == 0 {
		return noQuotes
	}
	if !s.status(v[colStatus]) {
		return noStatus
	}
	s.event.RequestSize, s.event.ResponseSize = size(v[colReceived]), size(v[colSent])
	s.rowTook(v)
	s.agent(v[colAgent])
	s.form = w3c
	if s.table.edge {
		s.form = cloudfront
	}
	r := s.split(v[colMethod], v[colStem])
	if s.replay {
		s.event.Client = dashless(v[colClient])
		if q := dashless(v[colQuery]); q != nil {
			s.event.Query = q
		}
	}
	return r
}

// dashless is nil for a dash, which stands for nothing.
func dashless(b []byte) []byte {
	if len(b) == 0 || string(b) == "-" {
		return nil
	}
	return b
}

// rowTook reads the duration: IIS has whole milliseconds; CloudFront, and whoever writes a fraction,
// has seconds, as the draft of the format says.
func (s *Source) rowTook(v *[columns][]byte) {
	unit, taken := millisecond, v[colMillis]
	if taken == nil {
		taken = v[colTaken]
		if s.table.edge || bytes.IndexByte(taken, '.') >= 0 {
			unit = second
		}
	}
	if d, ok := decimal(taken, unit); ok {
		s.took(d, true)
	}
}

// rowTime reads the date and the time of a line, with the day of #Date where it has none.
func (s *Source) rowTime(date, clock []byte) bool {
	if date == nil {
		date = s.table.date[:]
	}
	var stamp [len("2006-01-02T15:04:05.999999999")]byte
	if len(date) != 10 || len(clock) < 8 || 11+len(clock) > len(stamp) {
		return false
	}
	copy(stamp[:], date)
	stamp[10] = 'T'
	n := 11 + copy(stamp[11:], clock)
	at, read, ok := s.clock.iso(stamp[:n])
	s.event.UnixNano = at
	return ok && read == n
}
