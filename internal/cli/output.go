package cli

import (
	"io"
	"os"
	"sync"
)

// output is standard output. It remembers that a write failed, so that a command whose answer did not
// arrive does not end well: an answer that nobody can read must not pass for one.
type output struct {
	w   io.Writer
	mu  sync.Mutex
	err error
}

// Write implements io.Writer.
func (o *output) Write(p []byte) (int, error) {
	n, err := o.w.Write(p)
	if err != nil {
		o.mu.Lock()
		if o.err == nil {
			o.err = err
		}
		o.mu.Unlock()
	}
	return n, err
}

func (o *output) failed() error {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.err
}

// file is the file behind a writer; nil when it is none.
func file(w io.Writer) *os.File {
	if o, ok := w.(*output); ok {
		w = o.w
	}
	f, _ := w.(*os.File)
	return f
}
