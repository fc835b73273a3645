package httpload

// roles are what this test binary can be besides: see roleVariable.
func roles() map[string]func(string) {
	return map[string]func(string){
		"soak-server":  func(string) { soakServer() },
		"soak-load":    soakLoad,
		"two-server":   func(string) { twoServer() },
		"truth-server": truthServer,
		"truth-load":   truthLoad,
	}
}
