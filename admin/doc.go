// Package admin is Heddle's REST border: it decodes, authorises and bounds
// requests, hands them to a Service, and turns answers and internal errors into
// HTTP (problem+json, RFC 9457). It also holds the OpenAPI document, the
// metrics registry and the health routes. It owns no goroutine, keeps no graph
// and never journals; package host implements Service and serves the handlers,
// host/cli is its client.
package admin
