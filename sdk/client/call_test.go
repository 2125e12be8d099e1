package client

import (
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"reflect"
	"strings"
	"testing"

	"github.com/heddle-live/heddle/sdk/frame"
)

// callee is a server of one answer, and a client of it.
func callee(t *testing.T, status int, media, body string) (*Client, *[]string) {
	t.Helper()
	asked := new([]string)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		*asked = append(*asked, fmt.Sprintf("%s %s %s", r.Method, r.RequestURI,
			r.Header.Get("Idempotency-Key")))
		w.Header().Set("Content-Type", media)
		w.WriteHeader(status)
		_, _ = w.Write([]byte(body))
	}))
	t.Cleanup(server.Close)
	return &Client{api: server.URL, http: server.Client()}, asked
}

const receiptJSON = `{"revision":9,"inserted":1,"deleted":0,"replayed":true,` +
	`"statements":[{"rows":1,"inserted":1,"deleted":0}]}`

func TestCall(t *testing.T) {
	c, asked := callee(t, 200, "application/json", receiptJSON)
	got, err := c.Call(t.Context(), "shop", "claim", "Jörg/M", 7, 0.5, true, frame.Bytes("\x00\xff"))
	want := &Receipt{
		Revision: 9, Inserted: 1, Replayed: true,
		Statements: []StatementReceipt{{Rows: 1, Inserted: 1}},
	}
	if err != nil || !reflect.DeepEqual(got, want) {
		t.Errorf("%+v, %v", got, err)
	}
	if _, err := c.Call(t.Context(), "shop", "tick"); err != nil {
		t.Error(err)
	}
	revision := uint64(0)
	opt := CallOptions{IdempotencyKey: "a b", ExpectRevision: &revision}
	if _, err := c.CallWith(t.Context(), opt, "shop", "tick", 1); err != nil {
		t.Error(err)
	}
	lines := strings.Join(*asked, "\n")
	const wanted = "POST /v1/graphs/shop/actions/claim/J~c3~b6rg~2fM/7/0.5/true/AP8 \n" +
		"POST /v1/graphs/shop/actions/tick \n" +
		"POST /v1/graphs/shop/actions/tick/1?expect_revision=0 a b"
	if lines != wanted {
		t.Errorf("asked\n%s", lines)
	}
}

func TestCallRefused(t *testing.T) {
	c, _ := callee(t, 409, "application/problem+json",
		`{"status":409,"code":"precondition_failed","detail":"it is at 8","hint":"read again"}`)
	_, err := c.Call(t.Context(), "shop", "claim", 7)
	refused, ok := errors.AsType[*CallError](err)
	want := CallError{"precondition_failed", "it is at 8", "read again", 409}
	if !ok || *refused != want {
		t.Errorf("%v", err)
	}
	for name, other := range map[string]struct {
		status      int
		media, body string
	}{
		"page":      {502, "text/html", "<html>"},
		"no code":   {500, "application/problem+json", "{}"},
		"no answer": {200, "application/json", "{}"},
		"no JSON":   {200, "text/plain", "hello"},
	} {
		t.Run(name, func(t *testing.T) {
			c, _ := callee(t, other.status, other.media, other.body)
			_, err := c.Call(t.Context(), "shop", "claim", 7)
			if _, ours := errors.AsType[*CallError](err); err == nil || ours {
				t.Errorf("%v", err)
			}
		})
	}
}

func TestCallCannot(t *testing.T) {
	c, asked := callee(t, 200, "application/json", receiptJSON)
	if _, err := c.Call(t.Context(), "shop", "claim", struct{}{}); !errors.Is(err, frame.ErrKey) {
		t.Errorf("%v", err)
	}
	c.closed = true
	if _, err := c.Call(t.Context(), "shop", "claim", 7); !errors.Is(err, ErrClosed) {
		t.Errorf("%v", err)
	}
	if len(*asked) > 0 {
		t.Errorf("asked %q", *asked)
	}
	if _, err := new(Client).Call(t.Context(), "g", "a"); !errors.Is(err, errNoURL) {
		t.Errorf("%v", err)
	}
}

func TestAPIOf(t *testing.T) {
	for url, want := range map[string]string{
		"moq://127.0.0.1:4443":      "http://127.0.0.1:4443",
		"moq://heddle.example:4443": "https://heddle.example:4443",
		"https://[::1]:4443/x":      "http://[::1]:4443",
		"https://heddle.example":    "https://heddle.example",
		"ws://127.0.0.1:1/":         "http://127.0.0.1:1",
		"ws://heddle.example":       "http://heddle.example",
		"wss://localhost:7":         "https://localhost:7",
		"http://localhost:7":        "http://localhost:7",
	} {
		if got := apiOf(url); got != want {
			t.Errorf("%s: %s, want %s", url, got, want)
		}
	}
}
