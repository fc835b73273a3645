package report

import (
	"fmt"
	"html"
	"html/template"
	"math"
	"strconv"
	"strings"
)

// line is one series of a chart; NaN is a gap. Its class, 1 to maxLines, gives colour and dashes.
type line struct {
	class int
	name  string // for the legend
	y     []float64
}

// chart is a line chart drawn as SVG. It has no inline style, as the page's policy forbids one:
// colours come from classes of the page's style sheet.
type chart struct {
	id, title, desc string
	x               []float64
	lines           []line // at most maxLines
	xTicks, yTicks  []tick
	yMin, yMax      float64 // yMin > 0: the y axis is logarithmic, from yMin
	bands           []band
}

type tick struct {
	at   float64
	text string
}

// band shades a part of the x axis that is not judged.
type band struct {
	from, to float64
	text     string
}

// The chart's geometry in its own units; the page scales it.
const (
	chartW, chartH = 1050.0, 260.0
	padL, padR     = 78.0, 18.0
	padT, padB     = 12.0, 28.0
	maxLines       = 6
)

func (c *chart) px(x float64) float64 {
	lo, hi := c.x[0], c.x[len(c.x)-1]
	if hi <= lo {
		return padL
	}
	return padL + (x-lo)/(hi-lo)*(chartW-padL-padR)
}

func (c *chart) py(y float64) float64 {
	if c.yMax <= 0 {
		return chartH - padB
	}
	at := y / c.yMax
	if c.yMin > 0 {
		at = math.Log(max(y, c.yMin)/c.yMin) / math.Log(c.yMax/c.yMin)
	}
	return chartH - padB - min(1, max(0, at))*(chartH-padT-padB)
}

// scale gives the y axis its ticks. A range of more than logFrom times is drawn on a logarithmic
// axis, where one time-out does not flatten everything else; scale tells whether it is.
func (c *chart) scale(write func(float64) string, logarithmic bool) bool {
	lo, hi := math.Inf(1), 0.0
	for _, l := range c.lines {
		for _, v := range l.y {
			if v > 0 && !math.IsInf(v, 0) {
				lo, hi = min(lo, v), max(hi, v)
			}
		}
	}
	lo = max(lo, hi/logDecades) // a hostile run.json could ask for hundreds of decades
	if !logarithmic || hi < logFrom*lo || hi < tiny {
		c.yTicks, c.yMax = niceTicks(hi, write)
		return false
	}
	c.yMin, c.yMax = math.Pow(10, math.Floor(math.Log10(lo))), math.Pow(10, math.Ceil(math.Log10(hi)))
	for v := c.yMin; v <= c.yMax*1.001; v *= 10 {
		c.yTicks = append(c.yTicks, tick{v, write(v)})
	}
	return true
}

const (
	logFrom    = 50
	logDecades = 1e8
	tiny       = 1e-9 // of any unit here: nothing to draw
	logNote    = " The axis is logarithmic."
)

// svg draws the chart; "" without a point.
func (c *chart) svg() template.HTML {
	if len(c.x) == 0 {
		return ""
	}
	b := &strings.Builder{}
	fmt.Fprintf(b, `<svg viewBox="0 0 %g %g" role="img" aria-labelledby="%s-t %s-d" class="chart"><title id="%s-t">%s</title><desc id="%s-d">%s</desc>`,
		chartW, chartH, c.id, c.id, c.id, html.EscapeString(c.title), c.id, html.EscapeString(c.desc))
	for _, s := range c.bands {
		fmt.Fprintf(b, `<rect class="band" x="%s" y="%s" width="%s" height="%s"/><text class="bandtext" x="%s" y="%s">%s</text>`,
			coord(c.px(s.from)), coord(padT), coord(max(0, c.px(s.to)-c.px(s.from))), coord(chartH-padT-padB),
			coord(c.px(s.from)+4), coord(padT+12), html.EscapeString(s.text))
	}
	for _, t := range c.yTicks {
		fmt.Fprintf(b, `<line class="grid" x1="%s" x2="%s" y1="%s" y2="%s"/><text class="tick" text-anchor="end" x="%s" y="%s">%s</text>`,
			coord(padL), coord(chartW-padR), coord(c.py(t.at)), coord(c.py(t.at)), coord(padL-8), coord(c.py(t.at)+4), html.EscapeString(t.text))
	}
	for _, t := range c.xTicks {
		fmt.Fprintf(b, `<line class="axis" x1="%s" x2="%s" y1="%s" y2="%s"/><text class="tick" text-anchor="middle" x="%s" y="%s">%s</text>`,
			coord(c.px(t.at)), coord(c.px(t.at)), coord(chartH-padB), coord(chartH-padB+5), coord(c.px(t.at)), coord(chartH-padB+19), html.EscapeString(t.text))
	}
	for _, l := range c.lines {
		c.path(b, l)
	}
	b.WriteString(`</svg>`)
	return template.HTML(b.String()) // every text above is escaped, every number formatted
}

// path draws one series, broken at gaps; a point that stands alone is a dot.
func (c *chart) path(b *strings.Builder, l line) {
	var d strings.Builder
	var dots strings.Builder
	pen := false
	for k, y := range l.y {
		if math.IsNaN(y) || math.IsInf(y, 0) {
			pen = false
			continue
		}
		x, py := coord(c.px(c.x[k])), coord(c.py(y))
		next := k+1 < len(l.y) && !math.IsNaN(l.y[k+1])
		switch {
		case pen:
			d.WriteString("L" + x + " " + py)
		case next:
			d.WriteString("M" + x + " " + py)
		default:
			fmt.Fprintf(&dots, `<circle class="dot s%d" cx="%s" cy="%s" r="2.5"/>`, l.class, x, py)
		}
		pen = next || pen
	}
	if d.Len() > 0 {
		fmt.Fprintf(b, `<path class="line s%d" d="%s"/>`, l.class, d.String())
	}
	b.WriteString(dots.String())
}

// coord writes a coordinate in tenths: finer than a screen shows, and short.
func coord(v float64) string {
	if math.IsNaN(v) || math.IsInf(v, 0) {
		return "0"
	}
	return strconv.FormatFloat(math.Round(v*10)/10, 'f', -1, 64)
}

// wholeTicks is niceTicks for counts, of which there are no halves.
func wholeTicks(largest float64, write func(float64) string) ([]tick, float64) {
	return niceTicks(max(largest, 4), write)
}

// niceTicks gives up to about five round values from 0, and the top of the axis.
func niceTicks(largest float64, write func(float64) string) ([]tick, float64) {
	if !(largest > tiny) || largest > 1e300 {
		return []tick{{0, write(0)}}, 1
	}
	step := niceStep(largest / 4)
	var out []tick
	top := math.Ceil(largest/step-1e-9) * step
	for k := 0.0; k*step <= top*(1+1e-9); k++ {
		out = append(out, tick{k * step, write(k * step)})
	}
	return out, top
}

// niceStep rounds up to 1, 2 or 5 times a power of ten.
func niceStep(v float64) float64 {
	power := math.Pow(10, math.Floor(math.Log10(v)))
	for _, m := range []float64{1, 2, 5} {
		if v <= m*power*(1+1e-9) {
			return m * power
		}
	}
	return 10 * power
}

// timeTicks are round times in seconds.
func timeTicks(last float64) []tick {
	step := 1.0
	for _, s := range []float64{1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200, 21600, 43200, 86400} {
		step = s
		if last/s <= 8 {
			break
		}
	}
	for last/step > 16 {
		step *= 2
	}
	var out []tick
	for t := 0.0; t <= last; t += step {
		out = append(out, tick{t, clock(t)})
	}
	return out
}

// clock writes seconds as 45 s or 1:30 or 2:00:00.
func clock(s float64) string {
	n := int64(s)
	switch {
	case n < 60:
		return fmt.Sprintf("%d s", n)
	case n < 3600:
		return fmt.Sprintf("%d:%02d", n/60, n%60)
	}
	return fmt.Sprintf("%d:%02d:%02d", n/3600, n/60%60, n%60)
}

// strip draws where a measured value and its interval lie against a limit and a baseline, on one line.
func strip(measured, lo, hi float64, unbounded bool, limit, baseline float64) template.HTML {
	const w, h = 200.0, 22.0
	top := 0.0
	for _, v := range []float64{measured, lo, hi, limit, baseline} {
		if !math.IsNaN(v) && !math.IsInf(v, 0) {
			top = max(top, v)
		}
	}
	if top <= 0 {
		return ""
	}
	top *= 1.12
	at := func(v float64) string { return coord(4 + min(1, max(0, v/top))*(w-8)) }
	b := &strings.Builder{}
	fmt.Fprintf(b, `<svg viewBox="0 0 %g %g" class="strip" aria-hidden="true"><line class="rail" x1="4" x2="196" y1="11" y2="11"/>`, w, h)
	if unbounded {
		hi = top
	}
	if hi > lo {
		fmt.Fprintf(b, `<line class="span" x1="%s" x2="%s" y1="11" y2="11"/>`, at(lo), at(hi))
	}
	if baseline > 0 {
		fmt.Fprintf(b, `<path class="base" d="M%s 6V16"/>`, at(baseline))
	}
	if limit > 0 {
		fmt.Fprintf(b, `<path class="limit" d="M%s 2V20"/>`, at(limit))
	}
	fmt.Fprintf(b, `<circle class="point" cx="%s" cy="11" r="4"/></svg>`, at(measured))
	return template.HTML(b.String()) // numbers only
}

// stack draws parts of a whole side by side; top is the length of the longest bar of the table.
func stack(parts []float64, top float64) template.HTML {
	const w, h = 260.0, 14.0
	if !(top > 0) {
		return ""
	}
	b := &strings.Builder{}
	fmt.Fprintf(b, `<svg viewBox="0 0 %g %g" class="stack" aria-hidden="true">`, w, h)
	x := 0.0
	for i, p := range parts {
		width := max(0, p) / top * w
		if width > 0.05 {
			fmt.Fprintf(b, `<rect class="f%d" x="%s" y="0" width="%s" height="%g"/>`, i+1, coord(x), coord(min(width, w-x)), h)
		}
		x += width
	}
	b.WriteString(`</svg>`)
	return template.HTML(b.String()) // numbers only
}
