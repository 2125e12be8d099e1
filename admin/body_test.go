package admin

import (
	"net/http/httptest"
	"runtime"
	"strings"
	"testing"
)

// A client that announces a large body and sends little of it costs little.
func TestAnnouncedBodyCostsNothing(t *testing.T) {
	const limit = 64 << 20
	r := httptest.NewRequest("POST", "/", strings.NewReader("{"))
	r.ContentLength = limit
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	_, err := readBody(httptest.NewRecorder(), r, limit, "body_bytes")
	runtime.ReadMemStats(&after)
	if got := after.TotalAlloc - before.TotalAlloc; got > limit/4 {
		t.Errorf("%d bytes allocated for a body of 1 byte, %v", got, err)
	}
}
