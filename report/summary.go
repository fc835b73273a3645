package report

import (
	"bytes"
	"io"
	"os"

	"seatrial/evidence"
	"seatrial/fault"
)

// StepSummaryVariable names the file to which a GitHub workflow step appends its summary.
const StepSummaryVariable = "GITHUB_STEP_SUMMARY"

// StepSummary appends the Markdown page to the workflow's summary when there is one (RE-5). It tells
// whether there was.
func StepSummary(run *evidence.Run, getenv func(string) string) (bool, error) {
	path := getenv(StepSummaryVariable)
	if path == "" {
		return false, nil
	}
	var page bytes.Buffer
	if err := Markdown(&page, run); err != nil {
		return false, err
	}
	page.WriteByte('\n')
	if err := appendTo(path, &page); err != nil {
		return false, fault.New(fault.EVD001, "the step summary %s could not be written", path).Because(err)
	}
	return true, nil
}

func appendTo(path string, r io.Reader) error {
	f, err := os.OpenFile(path, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o644)
	if err != nil {
		return err
	}
	_, err = io.Copy(f, r)
	if closed := f.Close(); err == nil {
		err = closed
	}
	return err
}
