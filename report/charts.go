package report

import (
	"fmt"
	"html/template"
	"maps"
	"math"
	"slices"
	"strconv"

	"seatrial/evidence"
	"seatrial/record"
	"seatrial/report/figure"
)

// maxPoints is how many points a chart and its table have; a longer series is gathered.
const maxPoints = 600

// panel is one figure of the page: a chart, its legend and the table behind it.
type panel struct {
	ID, Title, Note string
	SVG             template.HTML
	Legend          []legend
	Head            []string
	Rows            [][]string
	Empty           string // said in place of a chart without data
}

// legend names one line of a chart by its class.
type legend struct {
	Class int
	Name  string
}

func legends(lines []line) []legend {
	var out []legend
	for _, l := range lines {
		out = append(out, legend{l.class, l.name})
	}
	return out
}

// panels are the charts of RE-2, in their order.
func panels(run *evidence.Run) []panel {
	s, step := gather(run.Series, max(1, run.SeriesStep))
	out := []panel{rates(s, step), latencies(s), curvePanel(run), failures(s), delays(s), cpu(s)}
	if step > 1 {
		note := fmt.Sprintf(" Each point stands for %d s: rates are the mean, latencies, delays and CPU the highest in it.", step)
		for i := range out {
			if i != 2 {
				out[i].Note += note
			}
		}
	}
	return out
}

// gather joins neighbours until at most maxPoints are left: counts add up, percentiles and delays
// keep their highest, as a mean of percentiles is none.
func gather(series []evidence.Second, step int) ([]evidence.Second, int) {
	k := (len(series) + maxPoints - 1) / maxPoints
	if k <= 1 {
		return series, step
	}
	var out []evidence.Second
	for chunk := range slices.Chunk(series, k) {
		sum := chunk[0]
		sum.ByClass = maps.Clone(sum.ByClass)
		for _, s := range chunk[1:] {
			join(&sum, s)
		}
		out = append(out, sum)
	}
	return out, step * k
}

func join(to *evidence.Second, s evidence.Second) {
	to.Offered += s.Offered
	to.Achieved += s.Achieved
	to.Valid += s.Valid
	to.Errors += s.Errors
	to.Samples += s.Samples
	to.P50, to.P95, to.P99 = max(to.P50, s.P50), max(to.P95, s.P95), max(to.P99, s.P99)
	to.Max, to.SendDelayMax, to.CPU = max(to.Max, s.Max), max(to.SendDelayMax, s.SendDelayMax), max(to.CPU, s.CPU)
	for class, n := range s.ByClass {
		if to.ByClass == nil {
			to.ByClass = map[string]uint64{}
		}
		to.ByClass[class] += n
	}
}

// axis is how a panel's y axis is drawn.
type axis uint8

const (
	fromZero    axis = iota
	counting         // from zero, of whole numbers
	latencyAxis      // logarithmic when the range is large
)

// overTime draws lines with the run's seconds along the x axis.
func (p *panel) overTime(desc string, s []evidence.Second, write func(float64) string, a axis, lines ...line) {
	if len(s) == 0 {
		return
	}
	c := &chart{id: p.ID, title: p.Title, desc: desc, lines: lines, bands: unjudged(s)}
	for _, x := range s {
		c.x = append(c.x, float64(x.T))
	}
	c.xTicks = timeTicks(c.x[len(c.x)-1])
	if c.scale(write, a == latencyAxis) {
		p.Note += logNote
	}
	if a == counting {
		c.yTicks, c.yMax = wholeTicks(c.yMax, write)
	}
	p.SVG, p.Legend = c.svg(), legends(lines)
}

// unjudged are the warm-up and the drain.
func unjudged(s []evidence.Second) []band {
	var out []band
	for i, x := range s {
		name := map[string]string{"warmup": "warm-up", "drain": "drain"}[x.Phase]
		if name == "" {
			continue
		}
		to := float64(x.T)
		if i+1 < len(s) {
			to = float64(s[i+1].T)
		}
		if n := len(out); n > 0 && out[n-1].text == name {
			out[n-1].to = to
		} else {
			out = append(out, band{float64(x.T), to, name})
		}
	}
	return out
}

func pick(s []evidence.Second, f func(evidence.Second) float64) []float64 {
	out := make([]float64, len(s))
	for i, x := range s {
		out[i] = f(x)
	}
	return out
}

// sampled is a gap where a second has no sample, not a latency of zero.
func sampled(s []evidence.Second, f func(evidence.Second) float64) []float64 {
	return pick(s, func(x evidence.Second) float64 {
		if x.Samples == 0 {
			return math.NaN()
		}
		return f(x)
	})
}

func rates(s []evidence.Second, step int) panel {
	per := float64(step)
	p := panel{ID: "rates", Title: "Offered, achieved and valid rate",
		Note: "Requests per second, by the second in which they were due.",
		Head: []string{"time", "phase", "offered", "achieved", "valid"}, Empty: "Nothing was sent."}
	p.overTime("Three lines over the run's time: the rate that was due, answered, and answered correctly.", s, figure.Rate, fromZero,
		line{1, "offered (due)", pick(s, func(x evidence.Second) float64 { return float64(x.Offered) / per })},
		line{2, "achieved (answered)", pick(s, func(x evidence.Second) float64 { return float64(x.Achieved) / per })},
		line{3, "valid (answered and correct)", pick(s, func(x evidence.Second) float64 { return float64(x.Valid) / per })})
	for _, x := range s {
		p.Rows = append(p.Rows, []string{clock(float64(x.T)), x.Phase, figure.Rate(float64(x.Offered) / per),
			figure.Rate(float64(x.Achieved) / per), figure.Rate(float64(x.Valid) / per)})
	}
	return p
}

func latencies(s []evidence.Second) panel {
	p := panel{ID: "latency", Title: "Response time over time",
		Note: "From the due time, by the second in which the request was due; percentiles of one second have two significant digits.",
		Head: []string{"time", "n", "p50", "p95", "p99", "max"}, Empty: "No response time was measured."}
	if !anySamples(s) {
		return p
	}
	p.overTime("Three lines over the run's time: the 50th, 95th and 99th percentile of the response time.", s, figure.Millis, latencyAxis,
		line{1, "p50", sampled(s, func(x evidence.Second) float64 { return x.P50 })},
		line{2, "p95", sampled(s, func(x evidence.Second) float64 { return x.P95 })},
		line{4, "p99", sampled(s, func(x evidence.Second) float64 { return x.P99 })})
	for _, x := range s {
		row := []string{clock(float64(x.T)), figure.Count(x.Samples), "–", "–", "–", "–"}
		if x.Samples > 0 {
			row = []string{clock(float64(x.T)), figure.Count(x.Samples), figure.Millis(x.P50), figure.Millis(x.P95), figure.Millis(x.P99), figure.Millis(x.Max)}
		}
		p.Rows = append(p.Rows, row)
	}
	return p
}

func anySamples(s []evidence.Second) bool {
	return slices.ContainsFunc(s, func(x evidence.Second) bool { return x.Samples > 0 })
}

// curvePanel is the percentile curve with a logarithmic tail: each step to the right is a tenth of
// the requests before it.
func curvePanel(run *evidence.Run) panel {
	p := panel{ID: "curve", Title: "Percentile curve",
		Note: "All judged requests. Each step to the right leaves out nine tenths of what is left: the tail is what those meet who come often.",
		Head: []string{"percentile", "response time", "service time"}, Empty: "No response time was measured."}
	if run.Total == nil || len(run.Curve) == 0 {
		return p
	}
	c := &chart{id: p.ID, title: p.Title, desc: "Response and service time against the percentile, on a scale that widens towards 100%."}
	last := math.Log10(float64(max(10, run.Total.Samples)))
	var response, service []float64
	for _, q := range run.Curve {
		x := last
		if q.Percentile < 100 {
			x = min(last, -math.Log10(1-q.Percentile/100))
		}
		if math.IsNaN(x) || x < 0 {
			continue // a hostile run.json
		}
		c.x = append(c.x, x)
		response, service = append(response, q.Response), append(service, q.Service)
		p.Rows = append(p.Rows, []string{percentileName(q.Percentile), figure.Millis(q.Response), figure.Millis(q.Service)})
	}
	c.lines = []line{{2, "response time (from due)", response}, {1, "service time (from first byte written)", service}}
	if c.scale(figure.Millis, true) {
		p.Note += logNote
	}
	c.xTicks = []tick{{0, "0%"}}
	for k := 1.0; k <= last; k++ {
		c.xTicks = append(c.xTicks, tick{k, percentileName(100 - math.Pow(10, 2-k))})
	}
	p.Note += " n=" + figure.Count(run.Total.Samples) + "."
	p.SVG, p.Legend = c.svg(), legends(c.lines)
	return p
}

func percentileName(v float64) string {
	return strconv.FormatFloat(math.Round(v*1e6)/1e6, 'f', -1, 64) + "%"
}

// failures has a line for each of the largest classes, and one for all others.
func failures(s []evidence.Second) panel {
	p := panel{ID: "errors", Title: "Errors by class over time", Note: "Failed requests, by the second in which they were due.", Empty: "No request failed."}
	total := map[string]uint64{}
	for _, x := range s {
		for class, n := range x.ByClass {
			total[class] += n
		}
	}
	classes := sortedCounts(total)
	if len(classes) == 0 {
		return p
	}
	shown := classes[:min(len(classes), maxLines-1)]
	p.Head = []string{"time"}
	var lines []line
	for _, c := range shown {
		p.Head = append(p.Head, className(c.name))
		lines = append(lines, line{len(lines) + 1, className(c.name) + " (" + figure.Count(c.n) + ")", pick(s, func(x evidence.Second) float64 { return float64(x.ByClass[c.name]) })})
	}
	if len(classes) > len(shown) {
		p.Head = append(p.Head, "other classes")
		lines = append(lines, line{maxLines, "other classes", pick(s, func(x evidence.Second) float64 { return float64(others(x, shown)) })})
	}
	p.overTime("One line for each class of error over the run's time.", s, figure.Number, counting, lines...)
	for i, x := range s {
		if len(x.ByClass) == 0 {
			continue
		}
		row := []string{clock(float64(x.T))}
		for _, l := range lines {
			row = append(row, figure.Count(uint64(l.y[i])))
		}
		p.Rows = append(p.Rows, row)
	}
	p.Note += " The table leaves out seconds without one."
	return p
}

func others(x evidence.Second, shown []counted) uint64 {
	var n uint64
	for class, k := range x.ByClass {
		if !slices.ContainsFunc(shown, func(c counted) bool { return c.name == class }) {
			n += k
		}
	}
	return n
}

func delays(s []evidence.Second) panel {
	p := panel{ID: "delay", Title: "Send delay", Note: "The generator's own error: the longest of each second. Time spent waiting for a connection is not in it, but in the response time.",
		Head: []string{"time", "longest send delay"}, Empty: "Nothing was sent."}
	p.overTime("One line over the run's time: the longest send delay of each second.", s, figure.Millis, fromZero,
		line{2, "longest send delay", pick(s, func(x evidence.Second) float64 { return x.SendDelayMax })})
	for _, x := range s {
		p.Rows = append(p.Rows, []string{clock(float64(x.T)), figure.Millis(x.SendDelayMax)})
	}
	return p
}

func cpu(s []evidence.Second) panel {
	p := panel{ID: "cpu", Title: "Generator CPU", Note: "Share of the cores that the generator may use.",
		Head: []string{"time", "CPU share"}, Empty: "The generator's CPU was not measured."}
	if !slices.ContainsFunc(s, func(x evidence.Second) bool { return x.CPU >= 0 }) {
		return p
	}
	p.overTime("One line over the run's time: the generator's share of its cores.", s, figure.Share, fromZero,
		line{2, "CPU share", pick(s, func(x evidence.Second) float64 {
			if x.CPU < 0 {
				return math.NaN()
			}
			return x.CPU
		})})
	for _, x := range s {
		p.Rows = append(p.Rows, []string{clock(float64(x.T)), figure.Share(x.CPU)})
	}
	return p
}

// accountRows is SA-12 as a table.
func accountRows(a record.Account) [][]string {
	return [][]string{{"due", figure.Count(a.Due)}, {"answered", figure.Count(a.Answered)}, {"failed", figure.Count(a.Failed)},
		{"timed out", figure.Count(a.TimedOut)}, {"abandoned", figure.Count(a.Abandoned)}, {"unsent", figure.Count(a.Unsent)}, {"lost", figure.Count(a.Lost)}}
}
