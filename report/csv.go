package report

import (
	"encoding/csv"
	"io"
	"maps"
	"slices"
	"strconv"
	"strings"

	"seatrial/evidence"
	"seatrial/record"
)

// AllRoutes names the row of the totals in summary.csv.
const AllRoutes = "(all routes)"

// Summary writes summary.csv: one row per route, after one for all of them. A figure that was not
// measured is an empty cell.
func Summary(w io.Writer, run *evidence.Run) error {
	rows := [][]string{summaryHeader()}
	total := evidence.RouteResult{Name: AllRoutes, Account: run.Account, Errors: run.Errors, ErrorShare: run.Rates.ErrorShare,
		SendDelayP99: run.SendDelayP99}
	if run.Total != nil {
		total.Response = *run.Total
	}
	if run.TotalService != nil {
		total.Service = *run.TotalService
	}
	for i := range run.Routes {
		total.BytesIn += run.Routes[i].BytesIn
		total.BytesOut += run.Routes[i].BytesOut
	}
	rows = append(rows, summaryRow(&total))
	for i := range run.Routes {
		rows = append(rows, summaryRow(&run.Routes[i]))
	}
	return writeCSV(w, rows)
}

func summaryHeader() []string {
	out := []string{"route", "due", "answered", "failed", "timed_out", "abandoned", "unsent", "lost", "error_share", "errors_by_class", "status"}
	for _, what := range []string{"response", "service"} {
		for _, q := range []string{"samples", "p50_ms", "p95_ms", "p99_ms", "p99_9_ms", "max_ms", "mean_ms"} {
			out = append(out, what+"_"+q)
		}
	}
	return append(out, "first_byte_p95_ms", "connection_wait_p95_ms", "send_delay_p99_ms", "bytes_in", "bytes_out",
		"p95_lo_ms", "p95_hi_ms", "baseline_p95_ms", "baseline_samples", "baseline_from", "production_share")
}

func summaryRow(r *evidence.RouteResult) []string {
	out := append([]string{cell(r.Name)}, account(r.Account)...)
	out = append(out, number(r.ErrorShare), counts(r.Errors), counts(r.Status))
	out = append(out, latencyCells(r.Response)...)
	out = append(out, latencyCells(r.Service)...)
	hi := ""
	if r.P95Bounded {
		hi = number(r.P95Hi)
	}
	return append(out, ifMeasured(r.FirstByte.P95, r.FirstByte.Samples), ifMeasured(r.Wait.P95, r.Wait.Samples), number(r.SendDelayP99),
		whole(r.BytesIn), whole(r.BytesOut), positive(r.P95Lo), hi, positive(r.Baseline), positive(float64(r.BaselineSamples)),
		cell(r.BaselineFrom), positive(r.Share))
}

func account(a record.Account) []string {
	return []string{whole(a.Due), whole(a.Answered), whole(a.Failed), whole(a.TimedOut), whole(a.Abandoned), whole(a.Unsent), whole(a.Lost)}
}

func latencyCells(l evidence.Latency) []string {
	out := []string{whole(l.Samples)}
	for _, v := range []float64{l.P50, l.P95, l.P99, l.P999, l.Max, l.Mean} {
		out = append(out, ifMeasured(v, l.Samples))
	}
	return out
}

// Series writes series.csv: one row per second of the run, by due time.
func Series(w io.Writer, run *evidence.Run) error {
	rows := [][]string{{"t_s", "step_s", "phase", "offered", "achieved", "valid", "errors", "errors_by_class", "samples",
		"p50_ms", "p95_ms", "p99_ms", "max_ms", "send_delay_max_ms", "generator_cpu_share"}}
	step := strconv.Itoa(max(1, run.SeriesStep))
	for _, s := range run.Series {
		cpu := ""
		if s.CPU >= 0 {
			cpu = number(s.CPU)
		}
		rows = append(rows, []string{strconv.Itoa(s.T), step, cell(s.Phase), whole(s.Offered), whole(s.Achieved), whole(s.Valid), whole(s.Errors),
			counts(s.ByClass), whole(s.Samples), ifMeasured(s.P50, s.Samples), ifMeasured(s.P95, s.Samples), ifMeasured(s.P99, s.Samples),
			ifMeasured(s.Max, s.Samples), number(s.SendDelayMax), cpu})
	}
	return writeCSV(w, rows)
}

func writeCSV(w io.Writer, rows [][]string) error {
	c := csv.NewWriter(w)
	if err := c.WriteAll(rows); err != nil { // WriteAll flushes
		return err
	}
	return c.Error()
}

// cell keeps a spreadsheet from running a hostile name as a formula.
func cell(s string) string {
	if s != "" && strings.ContainsRune("=+-@\t\r", rune(s[0])) {
		return "'" + s
	}
	return s
}

// counts writes a map as "name=n;name=n", by name.
func counts(m map[string]uint64) string {
	var out []string
	for _, k := range slices.Sorted(maps.Keys(m)) {
		out = append(out, k+"="+whole(m[k]))
	}
	return cell(strings.Join(out, ";"))
}

func whole(n uint64) string { return strconv.FormatUint(n, 10) }

// number is for machines: six digits, and no thousands.
func number(v float64) string { return strconv.FormatFloat(v, 'g', 6, 64) }

func positive(v float64) string {
	if v <= 0 {
		return ""
	}
	return number(v)
}

func ifMeasured(v float64, samples uint64) string {
	if samples == 0 {
		return ""
	}
	return number(v)
}
