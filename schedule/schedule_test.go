package schedule

import (
	"testing"
	"time"
)

func BenchmarkNext(b *testing.B) {
	for _, o := range []Open{
		{Kind: Poisson, Seed: 1, Rate: 20000, Duration: MaxDuration / 1000},
		{Kind: Even, Seed: 1, Rate: 20000, Duration: MaxDuration / 1000},
		{Kind: Bursty, Seed: 1, Rate: 20000, Dispersion: 30, Duration: MaxDuration / 1000},
	} {
		b.Run(string(o.Kind), func(b *testing.B) {
			s, err := New(o)
			if err != nil {
				b.Fatal(err)
			}
			b.ReportAllocs()
			var last time.Duration
			for b.Loop() {
				a, ok := s.Next()
				if !ok {
					b.Fatal("the schedule ended")
				}
				last = a.Due
			}
			_ = last
			b.ReportMetric(float64(b.N)/b.Elapsed().Seconds()/1e6, "M_arrivals/s")
		})
	}
}
