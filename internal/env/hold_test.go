package env

import (
	"testing"

	"seatrial/fault"
)

// TestATargetHasOneRun: the second run is refused while the first holds the target, and not after.
func TestATargetHasOneRun(t *testing.T) {
	dir := t.TempDir()
	release, err := HoldTarget(dir, "http://127.0.0.1:80")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := HoldTarget(dir, "http://127.0.0.1:80"); err == nil {
		t.Error("two runs hold one target")
	} else if e, _ := fault.As(err); e == nil || e.Code != fault.ENV007 {
		t.Errorf("%v, want ENV-007", err)
	}
	other, err := HoldTarget(dir, "http://127.0.0.1:81")
	if err != nil {
		t.Fatalf("another target is held too: %v", err)
	}
	other()
	release()
	again, err := HoldTarget(dir, "http://127.0.0.1:80")
	if err != nil {
		t.Fatalf("the target is held after it was let go: %v", err)
	}
	again()
}
