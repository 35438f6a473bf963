package notify

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptrace"
	"strconv"
	"sync/atomic"
	"time"
)

const (
	// sendTimeout bounds one attempt, from the connection to the end of the answer.
	sendTimeout = 10 * time.Second
	// maxAnswer bounds what is read of an answer, in bytes.
	maxAnswer = 16 << 10
	// maxAfter bounds how long a receiver may ask to wait.
	maxAfter = 15 * time.Minute
)

// request is one POST of JSON.
type request struct {
	url, token string
	header     http.Header
	body       any
}

// sender delivers notices.
type sender struct {
	client      *http.Client
	credentials credentials
	now         func() time.Time
}

func newSender(directory string, transport http.RoundTripper, now func() time.Time) *sender {
	return &sender{
		credentials: credentials{directory}, now: now,
		client: &http.Client{
			Transport: transport, Timeout: sendTimeout,
			// A redirect would take the credential, or the message, where nobody said.
			CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
		},
	}
}

// send delivers a notice to a destination; nil when it has been taken.
func (s *sender) send(ctx context.Context, d *Destination, n notice) *DeliveryError {
	switch {
	case d.Alertmanager != nil:
		return s.alertmanager(ctx, d.Alertmanager, n)
	case d.Slack != nil:
		return s.slack(ctx, d.Slack, n)
	case d.PagerDuty != nil:
		return s.pagerDuty(ctx, d.PagerDuty, n)
	case d.Webhook != nil:
		return s.webhook(ctx, d.Webhook, n)
	}
	return &DeliveryError{Cause: CauseOther, Detail: "the destination has no kind"}
}

// post sends a request and gives the answer's body.
func (s *sender) post(ctx context.Context, r request) ([]byte, *DeliveryError) {
	body, err := json.Marshal(r.body)
	if err != nil {
		return nil, &DeliveryError{Cause: CauseOther, Detail: "the message cannot be written as JSON"}
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, r.url, bytes.NewReader(body))
	if err != nil {
		return nil, &DeliveryError{Cause: CauseCredential, Detail: "its URL cannot be used"}
	}
	if r.header != nil {
		req.Header = r.header
	}
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("User-Agent", "tidemark")
	if r.token != "" {
		req.Header.Set("Authorization", "Bearer "+r.token)
	}
	var sent atomic.Bool // written by a goroutine of the transport
	req = req.WithContext(httptrace.WithClientTrace(ctx, &httptrace.ClientTrace{
		WroteRequest: func(info httptrace.WroteRequestInfo) { sent.Store(info.Err == nil) },
	}))
	resp, err := s.client.Do(req)
	if err != nil {
		failure := failed(err)
		failure.Perhaps = sent.Load()
		return nil, failure
	}
	defer resp.Body.Close()
	answer, err := io.ReadAll(io.LimitReader(resp.Body, maxAnswer))
	if failure := answered(resp.StatusCode, s.after(resp.Header)); failure != nil {
		failure.Perhaps = resp.StatusCode == http.StatusGatewayTimeout // the word of a proxy, not of the receiver
		return nil, failure
	}
	if err != nil {
		failure := failed(err)
		failure.Perhaps = true
		return nil, failure
	}
	return answer, nil
}

// after reads how long a receiver asks to wait, in seconds or as a date.
func (s *sender) after(h http.Header) time.Duration {
	text := h.Get("Retry-After")
	if seconds, err := strconv.Atoi(text); err == nil {
		return min(max(time.Duration(seconds)*time.Second, 0), maxAfter)
	}
	if at, err := http.ParseTime(text); err == nil {
		return min(max(at.Sub(s.now()), 0), maxAfter)
	}
	return 0
}

// rfc3339 is a time as receivers read it; "" for none.
func rfc3339(t time.Time) string {
	if t.IsZero() {
		return ""
	}
	return t.UTC().Format(time.RFC3339)
}

// lines are the facts of a notice for people, one a line, with what else is known.
func (n notice) lines() []Fact {
	out := n.Facts
	add := func(name, value string) {
		if value != "" {
			out = append(out[:len(out):len(out)], Fact{name, value})
		}
	}
	add("since", rfc3339(n.Since))
	add("owner", n.Owner)
	add("cluster", n.cluster)
	add("runbook", n.Runbook)
	return out
}

func (f Fact) String() string { return fmt.Sprintf("%s: %s", f.Name, f.Value) }
