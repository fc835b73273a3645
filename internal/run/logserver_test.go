package run

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"seatrial/fault"
	"seatrial/manifest"
	"seatrial/traffic/loki"
)

func TestCredentialsOfALogServerComeFromTheEnvironment(t *testing.T) {
	s := &manifest.SourceConfig{Server: "victorialogs", URL: "http://l", Query: "*", Since: time.Hour, Tenant: "1:2",
		UserEnv: "U", PasswordEnv: "P", BatchSize: 7}
	getenv := func(name string) string { return map[string]string{"U": "user", "P": "canary\n"}[name] }
	got, err := logServer(s, getenv)
	if err != nil || got.Backend != loki.VictoriaLogs || got.User != "user" || got.Password != "canary" || got.Since != time.Hour ||
		got.Tenant != "1:2" || got.BatchSize != 7 || got.Check() != nil {
		t.Errorf("%+v, %v", got, err)
	}
	if text := fmt.Sprintf("%v %+v %#v", got, got, got); strings.Contains(text, "canary") {
		t.Errorf("shows the password: %s", text)
	}
	s.BearerEnv = "T"
	_, err = logServer(s, getenv)
	if e, ok := fault.As(err); !ok || e.Code != fault.TRF020 || !strings.Contains(e.Message, "variable T") {
		t.Errorf("an empty variable gave %v", err)
	}
}
