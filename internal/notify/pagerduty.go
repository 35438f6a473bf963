package notify

import (
	"context"
	"strings"
)

// pagerDutyEvent is what the Events API v2 takes.
type pagerDutyEvent struct {
	RoutingKey  string            `json:"routing_key"`
	EventAction string            `json:"event_action"`
	DedupKey    string            `json:"dedup_key"`
	Client      string            `json:"client"`
	Payload     *pagerDutyPayload `json:"payload,omitempty"`
	Links       []pagerDutyLink   `json:"links,omitempty"`
}

type pagerDutyPayload struct {
	Summary       string            `json:"summary"`
	Source        string            `json:"source"`
	Severity      string            `json:"severity"`
	Timestamp     string            `json:"timestamp,omitempty"`
	Component     string            `json:"component,omitempty"`
	Group         string            `json:"group,omitempty"`
	Class         string            `json:"class"`
	CustomDetails map[string]string `json:"custom_details"`
}

type pagerDutyLink struct {
	Href string `json:"href"`
	Text string `json:"text"`
}

func (s *sender) pagerDuty(ctx context.Context, d *PagerDuty, n notice) *DeliveryError {
	key, failure := s.credentials.token(d.RoutingKeyFrom)
	if failure != nil {
		return failure
	}
	api := "https://events.pagerduty.com"
	if d.URL != "" {
		api = strings.TrimSuffix(d.URL, "/")
	}
	_, failure = s.post(ctx, request{url: api + "/v2/enqueue", body: pagerDutyEventOf(n, key)})
	return failure
}

func pagerDutyEventOf(n notice, key string) pagerDutyEvent {
	e := pagerDutyEvent{RoutingKey: key, EventAction: "trigger", DedupKey: shortened(n.id), Client: "Tidemark"}
	if n.resolved {
		e.EventAction = "resolve"
		return e
	}
	details := map[string]string{}
	for _, f := range n.lines() { // a summary names several things alike
		if before, named := details[f.Name]; named {
			f.Value = before + "; " + f.Value
		}
		details[f.Name] = f.Value
	}
	source := n.cluster
	if source == "" {
		source = "tidemark"
	}
	e.Payload = &pagerDutyPayload{
		Summary: n.Title, Source: source, Severity: map[Severity]string{Page: "critical", Note: "warning"}[n.Severity],
		Timestamp: rfc3339(n.Since), Component: n.Labels["name"], Group: n.Labels["namespace"], Class: n.Alert, CustomDetails: details,
	}
	if n.Runbook != "" {
		e.Links = []pagerDutyLink{{Href: n.Runbook, Text: "runbook"}}
	}
	return e
}
