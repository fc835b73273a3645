package traffic

import (
	"math"
	"slices"
)

// Law is Zipf's law over a number of values: the r-th most popular stands in a request with a weight of
// r to the power of minus the exponent.
type Law struct {
	Exponent float64
	Values   uint64
}

// The bounds of a fit.
const (
	maxExponent = 4.0
	minTop      = 16   // requests that a rank needs to take part: with fewer, ranks are in an order of chance
	maxRanks    = 4096 // ranks that take part at most
	maxSupport  = 1 << 40
)

// fitExponent gives the exponent of greatest likelihood for the counts of the most popular values, most
// first, as Zipf's law gives them to the first len(counts) ranks. It does not depend on how many less
// popular values there are. sigma is its standard error, infinite where the counts say nothing.
func fitExponent(counts []uint64) (exponent, sigma float64) {
	var total, logs float64
	ln := make([]float64, len(counts))
	for i, c := range counts {
		ln[i] = math.Log(float64(i + 1))
		total += float64(c)
		logs += float64(float64(c) * ln[i])
	}
	if len(counts) < 2 || total == 0 {
		return 0, math.Inf(1)
	}
	want := logs / total
	// moments are the mean and the variance of the logarithm of the rank under the law. The likelihood is
	// greatest where the mean is what was seen; the mean falls as the exponent grows.
	moments := func(s float64) (mean, variance float64) {
		var h, a, b float64
		for _, l := range ln {
			w := math.Exp(-s * l)
			h += w
			a += float64(w * l)
			b += float64(float64(w*l) * l)
		}
		mean = a / h
		return mean, b/h - float64(mean*mean)
	}
	low, high := 0.0, maxExponent
	for range 40 {
		exponent = (low + high) / 2
		if mean, _ := moments(exponent); mean > want {
			low = exponent
		} else {
			high = exponent
		}
	}
	_, variance := moments(exponent)
	return exponent, 1 / math.Sqrt(float64(total*variance))
}

// support is how many values a law needs so that n requests drawn by it meet distinct of them: a log in
// which some values were never met by chance ran over more values than it shows.
func support(exponent float64, n uint64, distinct float64) uint64 {
	if expectedDistinct(exponent, uint64(distinct), float64(n)) >= distinct-0.5 {
		return uint64(distinct)
	}
	low, high := uint64(distinct), uint64(distinct)
	for expectedDistinct(exponent, high, float64(n)) < distinct-0.5 {
		if low, high = high, high*2; high > maxSupport || high > uint64(distinct)<<10 {
			return low // the law never meets that many: its tail is not the one that was seen
		}
	}
	for low+1 < high && float64(high-low) > float64(low)/1024 {
		if mid := low + (high-low)/2; expectedDistinct(exponent, mid, float64(n)) < distinct-0.5 {
			low = mid
		} else {
			high = mid
		}
	}
	return high
}

// expectedDistinct is how many of a law's values n draws meet. Ranks beyond the first thousand are taken
// in blocks of one percent.
func expectedDistinct(exponent float64, values uint64, n float64) float64 {
	var sum, met float64
	each := func(visit func(rank, width float64)) {
		for r := uint64(1); r <= values; {
			width := max(1, r/128)
			if r < 1024 {
				width = 1
			}
			width = min(width, values-r+1)
			visit(float64(r)+float64(width-1)/2, float64(width))
			r += width
		}
	}
	each(func(rank, width float64) { sum += float64(width * math.Pow(rank, -exponent)) })
	each(func(rank, width float64) {
		met -= float64(width * math.Expm1(-n*math.Pow(rank, -exponent)/sum))
	})
	return met
}

// weights gives the law's weights of ranks 1 to n.
func (l Law) weights(n int) []float64 {
	out := make([]float64, n)
	for i := range min(uint64(n), l.Values) {
		out[i] = math.Pow(float64(i+1), -l.Exponent)
	}
	return out
}

// zipf draws ranks by rejection from the integral of the law (rejection-inversion, Hoermann and
// Derflinger 1996): constant memory and about one try per draw.
type zipf struct {
	n, exponent, top, width, near float64
}

func newZipf(n, exponent float64) *zipf {
	z := &zipf{n: n, exponent: exponent}
	z.top = z.integral(n + 0.5)
	z.width = z.integral(1.5) - 1 - z.top
	z.near = 2 - z.inverse(z.integral(2.5)-z.weight(2))
	return z
}

func (z *zipf) weight(x float64) float64 {
	if z.exponent == 1 {
		return 1 / x
	}
	return math.Exp(-z.exponent * math.Log(x))
}

func (z *zipf) integral(x float64) float64 {
	flat := 1 - z.exponent
	if math.Abs(flat) < 1e-9 {
		return math.Log(x)
	}
	return math.Expm1(flat*math.Log(x)) / flat
}

func (z *zipf) inverse(y float64) float64 {
	flat := 1 - z.exponent
	if math.Abs(flat) < 1e-9 {
		return math.Exp(y)
	}
	return math.Exp(math.Log1p(y*flat) / flat)
}

// at is the rank of request i, from 0.
func (z *zipf) at(stream, i uint64) uint64 {
	for try := uint64(0); ; try++ {
		u := z.top + float64(float64(draw(stream+try*0x632be59bd9b4e019, i)>>11)/(1<<53)*z.width)
		x := z.inverse(u)
		k := min(max(1, math.Floor(x+0.5)), z.n)
		if k-x <= z.near || u >= z.integral(k+0.5)-z.weight(k) {
			return min(uint64(k), uint64(z.n)) - 1
		}
	}
}

// shuffle is a permutation of the numbers below n that is computed, not kept: a Feistel network over
// the least even number of bits that holds them, walked until it lands below n. Which rank a value has
// must not follow its spelling, or the popular ones would lie side by side.
type shuffle struct {
	seed, n uint64
	half    uint
}

func newShuffle(seed, n uint64) shuffle {
	s := shuffle{seed: mix64(seed ^ 0x72616e6b00000001), n: n, half: 1}
	for s.half < 32 && (n-1)>>(2*s.half) > 0 {
		s.half++
	}
	return s
}

// at is where the permutation takes x, which is below n.
func (s shuffle) at(x uint64) uint64 {
	mask := uint64(1)<<s.half - 1
	for {
		left, right := x>>s.half, x&mask
		for round := range uint64(4) {
			left, right = right, left^mix64(s.seed+round*0x9e3779b97f4a7c15^right)&mask
		}
		if x = left<<s.half | right; x < s.n {
			return x
		}
	}
}

// byRank sorts counts, most first.
func byRank(counts []uint64) {
	slices.Sort(counts)
	slices.Reverse(counts)
}
