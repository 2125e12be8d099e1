package admin

import (
	"net/http"
	"net/http/httptest"
	"testing"
)

func TestPagesOfOtherPortsMayQuery(t *testing.T) {
	reached := false
	h := LoopbackOnly(crossOrigin(http.HandlerFunc(
		func(http.ResponseWriter, *http.Request) { reached = true })))
	for _, c := range []struct {
		name, method, origin, asks string
		status                     int
		allowed, reached           bool
	}{
		{"preflight", "OPTIONS", "http://localhost:8000", "POST", 204, true, false},
		{"query", "POST", "http://127.0.0.1:8000", "", 200, true, true},
		{"no page", "POST", "", "", 200, false, true},
		{"foreign page", "POST", "http://heddle.example", "", 403, false, false},
		{"foreign preflight", "OPTIONS", "http://heddle.example", "POST", 403, false, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			reached = false
			r := httptest.NewRequest(c.method, "http://127.0.0.1:4443/v1/graphs/g/query", nil)
			if c.origin != "" {
				r.Header.Set("Origin", c.origin)
			}
			if c.asks != "" {
				r.Header.Set("Access-Control-Request-Method", c.asks)
			}
			w := httptest.NewRecorder()
			h.ServeHTTP(w, r)
			allow := w.Header().Get("Access-Control-Allow-Origin")
			if w.Code != c.status || (allow == c.origin && allow != "") != c.allowed ||
				reached != c.reached {
				t.Errorf("status %d, allowed %q, reached %v", w.Code, allow, reached)
			}
		})
	}
}
