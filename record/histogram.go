package record

// Histogram is an HdrHistogram-compatible log-linear histogram of nanoseconds (EG-8).
type Histogram struct{}
