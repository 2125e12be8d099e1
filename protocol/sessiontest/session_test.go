package sessiontest

import (
	"bytes"
	"context"
	"errors"
	"io"
	"os"
	"testing"
	"testing/synctest"
	"time"

	"github.com/heddle-live/heddle/protocol"
)

func must[T any](t *testing.T) func(T, error) T {
	return func(v T, err error) T {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		return v
	}
}

func code(err error) protocol.StreamCode {
	if se, ok := errors.AsType[*protocol.StreamError](err); ok {
		return se.Code
	}
	return 9999
}

func TestStreamsCarryBytesAndEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx := t.Context()
		c, s := Pair(Config{RequestURI: "/x"}, Config{RTT: time.Second})
		out := must[protocol.Stream](t)(c.OpenStream(ctx))
		in := must[protocol.Stream](t)(s.AcceptStream(ctx))
		must[int](t)(out.Write([]byte("ask")))
		_ = out.Close()
		if got := must[[]byte](t)(io.ReadAll(in)); string(got) != "ask" {
			t.Errorf("%q", got)
		}
		<-out.Done()
		if c.OpenBidiStreams() != 1 {
			t.Error("credit came back before the answer ended")
		}
		must[int](t)(in.Write([]byte("answer")))
		in.Reset(7)
		if _, err := io.ReadAll(out); code(err) != 7 {
			t.Errorf("%v", err)
		}
		if c.OpenBidiStreams() != 0 {
			t.Error("credit is kept")
		}
		if c.RequestURI() != "/x" || s.RequestURI() != "/x" || s.Stats().SmoothedRTT != time.Second ||
			s.Stats().BytesReceived != 3 {
			t.Errorf("%q %+v", s.RequestURI(), s.Stats())
		}
	})
}

func TestWindows(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx := t.Context()
		c, s := Pair(Config{}, Config{StreamWindow: 10, SessionWindow: 15})
		one := must[protocol.SendStream](t)(c.OpenUniStream(ctx))
		two := must[protocol.SendStream](t)(c.OpenUniStream(ctx))
		if err := one.TryWrite(make([]byte, 11)); !errors.Is(err, protocol.ErrWouldBlock) {
			t.Errorf("over the stream's window: %v", err)
		}
		if err := one.TryWrite(make([]byte, 10)); err != nil {
			t.Error(err)
		}
		if err := two.TryWrite(make([]byte, 6)); !errors.Is(err, protocol.ErrWouldBlock) {
			t.Errorf("over the session's window: %v", err)
		}
		done := make(chan error, 1)
		go func() {
			_, err := two.Write(make([]byte, 40))
			done <- errors.Join(err, two.Close())
		}()
		in := must[protocol.ReceiveStream](t)(s.AcceptUniStream(ctx))
		must[int](t)(io.ReadFull(in, make([]byte, 10)))
		in2 := must[protocol.ReceiveStream](t)(s.AcceptUniStream(ctx))
		if got := must[[]byte](t)(io.ReadAll(in2)); !bytes.Equal(got, make([]byte, 40)) {
			t.Errorf("%d bytes", len(got))
		}
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
}

func TestCredit(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx := t.Context()
		c, s := Pair(Config{}, Config{UniStreams: 1, BidiStreams: -1})
		one := must[protocol.SendStream](t)(c.TryOpenUniStream())
		if _, err := c.TryOpenUniStream(); !errors.Is(err, protocol.ErrStreamLimit) {
			t.Errorf("got %v", err)
		}
		short, cancel := context.WithTimeout(ctx, time.Second)
		defer cancel()
		if _, err := c.OpenUniStream(short); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("got %v", err)
		}
		if _, err := c.OpenStream(short); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("got %v", err)
		}
		_ = one.Close()
		waits := make(chan struct{})
		go func() {
			_, _ = c.OpenUniStream(ctx)
			close(waits)
		}()
		in := must[protocol.ReceiveStream](t)(s.AcceptUniStream(ctx))
		synctest.Wait()
		select {
		case <-waits:
			t.Error("credit came back before the end was read")
		default:
		}
		must[[]byte](t)(io.ReadAll(in))
		<-waits
		if open, total := c.OpenUniStreams(); open != 1 || total != 2 {
			t.Errorf("%d open of %d", open, total)
		}
		s.GrantUniStreams(2)
		never := must[protocol.SendStream](t)(c.TryOpenUniStream())
		never.Reset(0) // the peer never heard of it
		if open, _ := c.OpenUniStreams(); open != 1 {
			t.Errorf("%d open", open)
		}
	})
}

func TestStopAndDeadline(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx := t.Context()
		c, s := Pair(Config{}, Config{})
		out := must[protocol.SendStream](t)(c.OpenUniStream(ctx))
		out.SetPriority(1)
		must[int](t)(out.Write([]byte("x")))
		in := must[protocol.ReceiveStream](t)(s.AcceptUniStream(ctx))
		if Urgency(in) != 1 {
			t.Errorf("urgency %d", Urgency(in))
		}
		must[int](t)(in.Read(make([]byte, 5)))
		start := time.Now()
		_ = in.SetReadDeadline(start.Add(time.Minute))
		if _, err := in.Read(make([]byte, 5)); !errors.Is(err, os.ErrDeadlineExceeded) ||
			time.Since(start) != time.Minute {
			t.Errorf("%v after %v", err, time.Since(start))
		}
		_ = in.SetReadDeadline(time.Time{})
		go in.Stop(5)
		if _, err := in.Read(make([]byte, 5)); code(err) != 5 {
			t.Errorf("read: %v", err)
		}
		<-out.Done()
		if _, err := out.Write([]byte("y")); code(err) != 5 {
			t.Errorf("write: %v", err)
		}
		if err := out.Close(); code(err) != 5 {
			t.Errorf("close: %v", err)
		}
	})
}

func TestCloseEndsEverything(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx := t.Context()
		c, s := Pair(Config{}, Config{})
		out := must[protocol.Stream](t)(c.OpenStream(ctx))
		in := must[protocol.Stream](t)(s.AcceptStream(ctx))
		errs := make(chan error, 3)
		go func() { _, err := out.Read(make([]byte, 1)); errs <- err }()
		go func() { _, err := s.AcceptUniStream(ctx); errs <- err }()
		go func() { _, err := out.Write(make([]byte, 1<<20)); errs <- err }()
		synctest.Wait()
		_ = c.CloseWithError(7, "bye")
		_ = c.CloseWithError(8, "again")
		for range 3 {
			if se, ok := errors.AsType[*protocol.SessionError](<-errs); !ok || se.Code != 7 {
				t.Errorf("%v", se)
			}
		}
		<-in.Done()
		se, ok := errors.AsType[*protocol.SessionError](context.Cause(s.Context()))
		if !ok || !se.Remote {
			t.Errorf("%v", se)
		}
	})
}

func TestBlockedCallsEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		few := Config{UniStreams: 4, BidiStreams: 4}
		c, s := Pair(few, few)
		BlockedCallsEnd(ctx, t, c, s, func() { _ = s.CloseWithError(7, "bye") })
	})
}
