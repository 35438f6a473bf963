package notify

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"net/http"
)

// webhookVersion is the version of what a webhook gets. Fields may be added under one version.
const webhookVersion = "1"

// webhookBody is what a webhook gets; docs/notifications.md describes it.
type webhookBody struct {
	Version  string            `json:"version"`
	Key      string            `json:"key"`
	Cluster  string            `json:"cluster,omitempty"`
	Alert    string            `json:"alert"`
	Status   string            `json:"status"`
	Severity Severity          `json:"severity"`
	Owner    string            `json:"owner,omitempty"`
	Person   string            `json:"person,omitempty"`
	Title    string            `json:"title"`
	Facts    []Fact            `json:"facts,omitempty"`
	Labels   map[string]string `json:"labels,omitempty"`
	Since    string            `json:"since,omitempty"`
	Runbook  string            `json:"runbook,omitempty"`
}

func (s *sender) webhook(ctx context.Context, w *Webhook, n notice) *DeliveryError {
	url, failure := s.credentials.address(w.URL, w.URLFrom, "")
	if failure != nil {
		return failure
	}
	token, failure := s.credentials.token(w.TokenFrom)
	if failure != nil {
		return failure
	}
	_, failure = s.post(ctx, request{url: url, token: token, header: http.Header{"Idempotency-Key": {shortened(n.id + "/" + n.status() + "/" + n.event())}}, body: webhookBody{
		Version: webhookVersion, Key: n.id, Cluster: n.cluster, Alert: n.Alert, Status: n.status(), Severity: n.Severity, Owner: n.Owner, Person: n.Person,
		Title: n.Title, Facts: n.Facts, Labels: n.Labels, Since: rfc3339(n.Since), Runbook: n.Runbook,
	}})
	return failure
}

// maxKey is the longest key that receivers take, in bytes: that of PagerDuty.
const maxKey = 255

// shortened is a key that receivers take, and still the key of that thing alone.
func shortened(key string) string {
	if len(key) <= maxKey {
		return key
	}
	sum := sha256.Sum256([]byte(key))
	tail := "~" + hex.EncodeToString(sum[:16])
	return key[:maxKey-len(tail)] + tail
}
