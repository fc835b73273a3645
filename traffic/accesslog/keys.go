package accesslog

// meaning is what a key holds within a scope. Names that only one server uses tell the format.
func (o *object) meaning(in scope, name []byte) key {
	switch in {
	case inLine:
		if k := lineKey(name); k != keyNone {
			return k
		}
		if f, k := formKey(name); f != jsonOther {
			if o.form == jsonOther || f != jsonNGINX {
				o.form = f
			}
			return k
		}
	case inRequest:
		return requestKey(name)
	case inResponse:
		return responseKey(name)
	case inHeaders:
		return headerKey(name)
	case inGoogle:
		return googleKey(name)
	default:
		return groupKey(in, name)
	}
	return keyNone
}

// inner is the scope of an object.
func (o *object) inner(in scope, name []byte) scope {
	switch in {
	case inLine:
		return o.lineScope(name)
	case inRequest:
		if string(name) == "headers" {
			return inHeaders
		}
	case inHTTP:
		switch string(name) {
		case "request":
			return inRequest
		case "response":
			return inResponse
		}
	}
	return passing
}

func (o *object) lineScope(name []byte) scope {
	switch string(name) {
	case "request":
		if o.form == jsonOther {
			o.form = caddy
		}
		return inRequest
	case "req":
		return inRequest
	case "res", "response":
		return inResponse
	case "httpRequest":
		o.form = jsonGoogle
		return inGoogle
	case "latencies":
		o.form = jsonKong
		return inLatencies
	case "http":
		return inHTTP
	case "url":
		return inURL
	case "user_agent":
		return inAgent
	case "client", "source":
		return inClient
	case "event":
		return inEvent
	}
	return passing
}

// lineKey knows the names that servers share.
func lineKey(name []byte) key {
	switch string(name) {
	case "request", "request_line", "requestLine":
		return keyRequest
	case "method", "verb", "http_method", "httpMethod", "requestMethod", "http.request.method", "http.method":
		return keyMethod
	case "uri", "url", "request_url", "requestUrl", "requestURI", "url.original", "http.target", "http.url":
		return keyTarget
	case "path", "request_path", "requestPath", "url_path", "resourcePath", "url.path":
		return keyPath
	case "args", "query", "query_string", "queryString", "url.query":
		return keyQuery
	case "status", "status_code", "statusCode", "code", "response_status", "http_status", "http.response.status_code",
		"http.status_code":
		return keyStatus
	case "time", "timestamp", "@timestamp", "ts", "date", "datetime", "requestTime", "asctime":
		return keyTime
	case "msg", "message", "MESSAGE":
		return keyMessage
	case "log":
		return keyWrapped
	case "logger":
		return keyLogger
	case "user_agent", "userAgent", "user-agent", "useragent", "ua", "agent", "user_agent.original", "http.user_agent":
		return keyAgent
	case "client_ip", "clientip", "clientIp", "client", "remote_ip", "remoteIp", "remoteAddress", "ip", "client.ip",
		"client.address", "source.ip", "remote_host":
		return keyClient
	case "x_forwarded_for", "x-forwarded-for", "xff", "forwarded_for":
		return keyForwarded
	case "request_size", "requestSize", "bytes_in":
		return keyRequestSize
	case "size", "bytes", "response_size", "responseSize", "responseLength", "bytes_out", "http.response.body.bytes":
		return keyResponseSize
	case "latency_human":
		return keyText
	}
	return durationKey(name)
}

// durationKey knows the names of durations.
func durationKey(name []byte) key {
	switch string(name) {
	case "duration", "latency", "elapsed", "took", "response_time", "responseTime", "response-time":
		return keyBare
	case "duration_s", "duration_seconds", "latency_seconds", "response_time_s", "request_duration_seconds", "elapsed_seconds":
		return keySeconds
	case "duration_ms", "durationMs", "latency_ms", "latencyMs", "response_time_ms", "responseTimeMs", "elapsed_ms",
		"elapsedMs", "request_time_ms", "time_taken_ms", "responseLatency":
		return keyMillis
	case "duration_us", "latency_us", "elapsed_us", "response_time_us", "duration_micros":
		return keyMicros
	case "duration_ns", "latency_ns", "elapsed_ns", "durationNs", "event.duration":
		return keyNanos
	}
	return keyNone
}

// formKey knows the names that tell the format; jsonOther for all others.
func formKey(name []byte) (form, key) {
	if len(name) == 0 {
		return jsonOther, keyNone
	}
	switch c := name[0]; {
	case c >= 'A' && c <= 'Z':
		return upperKey(name)
	default:
		if f, k := proxyKey(name); f != jsonOther {
			return f, k
		}
		return nginxKey(name)
	}
}

// upperKey knows the names of Traefik and Cloudflare, which begin with a capital.
func upperKey(name []byte) (form, key) {
	switch string(name) {
	case "RequestMethod":
		return traefik, keyMethod
	case "RequestPath":
		return traefik, keyTarget
	case "DownstreamStatus":
		return traefik, keyStatus
	case "Duration":
		return traefik, keyNanos
	case "StartUTC":
		return traefik, keyStart
	case "DownstreamContentSize":
		return traefik, keyResponseSize
	case "RequestContentSize":
		return traefik, keyRequestSize
	case "ClientHost":
		return traefik, keyClient
	case "ClientRequestMethod":
		return cloudflare, keyMethod
	case "ClientRequestURI":
		return cloudflare, keyTarget
	case "ClientRequestPath":
		return cloudflare, keyPath
	case "EdgeResponseStatus":
		return cloudflare, keyStatus
	case "EdgeStartTimestamp":
		return cloudflare, keyStart
	case "EdgeEndTimestamp":
		return cloudflare, keyEnd
	case "EdgeResponseBytes":
		return cloudflare, keyResponseSize
	case "ClientRequestBytes":
		return cloudflare, keyRequestSize
	case "ClientRequestUserAgent":
		return cloudflare, keyAgent
	case "ClientIP":
		return cloudflare, keyClient
	}
	return jsonOther, keyNone
}

// proxyKey knows the names of Envoy, Linkerd, Traefik's headers and Kong.
func proxyKey(name []byte) (form, key) {
	switch string(name) {
	case "request_User-Agent":
		return traefik, keyAgent
	case "response_code":
		return envoyJSON, keyStatus
	case "response_flags", "response_code_details", "upstream_cluster":
		return envoyJSON, keyNone
	case "start_time":
		return envoyJSON, keyStart
	case "x-envoy-origin-path", "x-envoy-original-path":
		return envoyJSON, keyTarget
	case "bytes_received":
		return envoyJSON, keyRequestSize
	case "downstream_remote_address":
		return envoyJSON, keyClient
	case "total_ns":
		return linkerd, keyNanos
	case "processing_ns":
		return linkerd, keyNone
	case "request_bytes":
		return linkerd, keyRequestSize
	case "response_bytes":
		return linkerd, keyResponseSize
	case "client.addr":
		return linkerd, keyClient
	case "started_at":
		return jsonKong, keyStart
	}
	return jsonOther, keyNone
}

// nginxKey knows NGINX's own variables, which people take as names.
func nginxKey(name []byte) (form, key) {
	switch string(name) {
	case "request_uri":
		return jsonNGINX, keyTarget
	case "request_method":
		return jsonNGINX, keyMethod
	case "time_local", "time_iso8601", "msec":
		return jsonNGINX, keyTime
	case "request_time":
		return jsonNGINX, keySeconds
	case "upstream_response_time", "upstream_addr", "upstream_status", "server_protocol", "remote_user", "http_referer", "http_host":
		return jsonNGINX, keyNone
	case "body_bytes_sent", "bytes_sent":
		return jsonNGINX, keyResponseSize
	case "request_length":
		return jsonNGINX, keyRequestSize
	case "http_user_agent":
		return jsonNGINX, keyAgent
	case "remote_addr":
		return jsonNGINX, keyClient
	case "http_x_forwarded_for":
		return jsonNGINX, keyForwarded
	}
	return jsonOther, keyNone
}

// requestKey knows the names within a request object: those of Caddy, Kong, pino and others.
func requestKey(name []byte) key {
	switch string(name) {
	case "method":
		return keyMethod
	case "uri", "url", "originalUrl":
		return keyTarget
	case "path":
		return keyPath
	case "size", "bytes":
		return keyRequestSize
	case "remote_ip", "client_ip", "remoteAddress", "remote_addr":
		return keyClient
	}
	return keyNone
}

func responseKey(name []byte) key {
	switch string(name) {
	case "status", "statusCode", "status_code":
		return keyStatus
	case "size", "bytes":
		return keyResponseSize
	}
	return keyNone
}

func headerKey(name []byte) key {
	switch string(name) {
	case "User-Agent", "user-agent":
		return keyAgent
	case "X-Forwarded-For", "x-forwarded-for":
		return keyForwarded
	}
	return keyNone
}

// googleKey knows the names of Google Cloud's HttpRequest.
func googleKey(name []byte) key {
	switch string(name) {
	case "requestMethod":
		return keyMethod
	case "requestUrl":
		return keyTarget
	case "status":
		return keyStatus
	case "latency":
		return keyText
	case "requestSize":
		return keyRequestSize
	case "responseSize":
		return keyResponseSize
	case "userAgent":
		return keyAgent
	case "remoteIp":
		return keyClient
	}
	return keyNone
}

// groupKey knows the groups of the Elastic Common Schema, and Kong's latencies.
func groupKey(in scope, name []byte) key {
	switch {
	case in == inLatencies && string(name) == "request":
		return keyMillis
	case in == inURL && string(name) == "original":
		return keyTarget
	case in == inURL && string(name) == "path":
		return keyPath
	case in == inURL && string(name) == "query":
		return keyQuery
	case in == inAgent && string(name) == "original":
		return keyAgent
	case in == inClient && string(name) == "ip":
		return keyClient
	case in == inEvent && string(name) == "duration":
		return keyNanos
	}
	return keyNone
}
