package lokitest

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"regexp"
	"slices"
	"strconv"
	"time"
)

// sorted is the end of a query that asks for a page.
var sorted = regexp.MustCompile(`^(.*) \| sort by \(_time\) limit (\d+)$`)

// victoria answers as VictoriaLogs does: a JSON object for each entry, one a line. Entries of one
// instant come in no order.
func (s *Server) victoria(w http.ResponseWriter, r *http.Request) {
	q := r.URL.Query()
	start, err1 := time.Parse(time.RFC3339Nano, q.Get("start"))
	end, err2 := time.Parse(time.RFC3339Nano, q.Get("end"))
	parts := sorted.FindStringSubmatch(q.Get("query"))
	if err1 != nil || err2 != nil || parts == nil {
		http.Error(w, "cannot parse query: unexpected token", http.StatusBadRequest)
		return
	}
	limit, _ := strconv.Atoi(parts[2]) // of digits
	var match map[string]string
	if parts[1] != "*" {
		var words string
		if match, words = selector(parts[1]); words != "" {
			http.Error(w, "cannot parse query ["+parts[1]+"]", http.StatusBadRequest)
			return
		}
	}
	all := s.pick(match, start.UnixNano(), end.UnixNano())
	slices.Reverse(all)
	var text bytes.Buffer
	for _, e := range s.cut(all, limit, false) {
		row := maps.Clone(e.labels)
		if row == nil {
			row = map[string]string{}
		}
		maps.Copy(row, e.Metadata)
		row["_msg"], row["_stream"] = e.Line, fmt.Sprint(e.labels)
		row["_time"] = time.Unix(0, e.Time).UTC().Format(time.RFC3339Nano)
		line, err := json.Marshal(row)
		if err != nil {
			http.Error(w, err.Error(), http.StatusInternalServerError)
			return
		}
		text.Write(append(line, '\n'))
	}
	s.write(w, r, text.Bytes())
}
