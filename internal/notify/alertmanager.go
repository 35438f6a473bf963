package notify

import (
	"context"
	"maps"
	"strings"
	"time"
)

const (
	// alertLives is how long an alert stays at Alertmanager when nobody repeats it: a controller that is gone leaves no alert that
	// burns for ever.
	alertLives = time.Hour
	// alertRepeats is how often one that holds is repeated there, which Alertmanager takes for the same alert.
	alertRepeats = alertLives / 3
)

// postableAlert is what Alertmanager's v2 API takes.
type postableAlert struct {
	Labels       map[string]string `json:"labels"`
	Annotations  map[string]string `json:"annotations"`
	StartsAt     string            `json:"startsAt,omitempty"`
	EndsAt       string            `json:"endsAt"`
	GeneratorURL string            `json:"generatorURL,omitempty"`
}

func (s *sender) alertmanager(ctx context.Context, a *Alertmanager, n notice) *DeliveryError {
	url, failure := s.credentials.address(a.URL, a.URLFrom, "/api/v2/alerts")
	if failure != nil {
		return failure
	}
	token, failure := s.credentials.token(a.TokenFrom)
	if failure != nil {
		return failure
	}
	_, failure = s.post(ctx, request{url: url, token: token, body: []postableAlert{alertOf(n, s.now())}})
	return failure
}

// alertOf is a notice as an alert. Its labels identify it, so they are the same when it ends.
func alertOf(n notice, now time.Time) postableAlert {
	labels := map[string]string{}
	maps.Copy(labels, n.Labels)
	maps.Copy(labels, map[string]string{"alertname": n.Alert, "severity": string(n.Severity), "tidemark_key": n.Key})
	if n.Owner != "" {
		labels["owner"] = n.Owner
	}
	if n.cluster != "" {
		labels["cluster"] = n.cluster
	}
	var facts []string
	for _, f := range n.Facts {
		facts = append(facts, f.String())
	}
	annotations := map[string]string{"summary": n.Title}
	if len(facts) > 0 {
		annotations["description"] = strings.Join(facts, "\n")
	}
	if n.Runbook != "" {
		annotations["runbook_url"] = n.Runbook
	}
	ends := now.Add(alertLives)
	if n.resolved {
		ends = now
	}
	return postableAlert{Labels: labels, Annotations: annotations, StartsAt: rfc3339(n.Since), EndsAt: rfc3339(ends)}
}
