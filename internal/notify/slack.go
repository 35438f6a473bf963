package notify

import (
	"context"
	"encoding/json"
	"strings"
)

// slackMessage is what chat.postMessage and incoming webhooks take; the latter know their channel.
type slackMessage struct {
	Channel     string            `json:"channel,omitempty"`
	Text        string            `json:"text"`
	Attachments []slackAttachment `json:"attachments,omitempty"`
	// Links are shown as they are: what a link leads to need not be fetched by Slack.
	UnfurlLinks bool `json:"unfurl_links"`
}

type slackAttachment struct {
	Color string `json:"color"`
	Text  string `json:"text"`
}

// Slack takes these three for markup.
var slackEscapes = strings.NewReplacer("&", "&amp;", "<", "&lt;", ">", "&gt;")

func (s *sender) slack(ctx context.Context, d *Slack, n notice) *DeliveryError {
	message := slackMessageOf(n)
	if d.WebhookFrom != "" {
		url, failure := s.credentials.address("", d.WebhookFrom, "")
		if failure != nil {
			return failure
		}
		_, failure = s.post(ctx, request{url: url, body: message})
		return failure
	}
	token, failure := s.credentials.token(d.TokenFrom)
	if failure != nil {
		return failure
	}
	message.Channel = d.Channel
	api := "https://slack.com/api"
	if d.URL != "" {
		api = strings.TrimSuffix(d.URL, "/")
	}
	answer, failure := s.post(ctx, request{url: api + "/chat.postMessage", token: token, body: message})
	if failure != nil {
		return failure
	}
	return slackAnswered(answer)
}

func slackMessageOf(n notice) slackMessage {
	color := map[Severity]string{Page: "danger", Note: "warning"}[n.Severity]
	if n.resolved {
		color = "good"
	}
	var lines []string
	for _, f := range n.lines() {
		lines = append(lines, slackEscapes.Replace(f.String()))
	}
	m := slackMessage{Text: slackEscapes.Replace(n.headline())}
	if len(lines) > 0 {
		m.Attachments = []slackAttachment{{Color: color, Text: strings.Join(lines, "\n")}}
	}
	return m
}

// What Slack's API says in the body of an answer with status 200, as far as somebody can do something about it.
var slackErrors = map[string]string{
	"channel_not_found": "there is no such channel, or the bot may not see it: mend the channel, or invite the bot",
	"not_in_channel":    "the bot is not in the channel: invite it",
	"is_archived":       "the channel is archived: name another one",
	"invalid_auth":      "the token is not accepted: renew it in the Secret",
	"not_authed":        "the token is not accepted: renew it in the Secret",
	"account_inactive":  "the bot was removed: renew its token in the Secret",
	"token_revoked":     "the token was revoked: renew it in the Secret",
	"token_expired":     "the token has expired: renew it in the Secret",
	"missing_scope":     "the bot lacks the scope chat:write: add it",
}

// slackAnswered reads an answer of Slack's API. Words that are not known are not repeated.
func slackAnswered(body []byte) *DeliveryError {
	var answer struct {
		OK    bool   `json:"ok"`
		Error string `json:"error"`
	}
	if err := json.Unmarshal(body, &answer); err != nil {
		return &DeliveryError{Cause: CauseOther, Detail: "the answer is not one of Slack: is url the address of its API?"}
	}
	if answer.OK {
		return nil
	}
	detail, ok := slackErrors[answer.Error]
	if !ok {
		detail = "it does not accept the message"
	}
	return &DeliveryError{Cause: CauseRefused, Detail: detail}
}
