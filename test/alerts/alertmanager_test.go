package alerts

import (
	"bytes"
	"encoding/json"
	"os"
	"testing"
	"time"

	"github.com/go-openapi/strfmt"
	"github.com/prometheus/alertmanager/api/v2/models"
)

// What the controller posts to Alertmanager is what Alertmanager's own models take, field by field.
func TestAlertmanagerTakesTheAlertsOfTheController(t *testing.T) {
	text, err := os.ReadFile("../../internal/notify/testdata/alert.json")
	if err != nil {
		t.Fatal(err)
	}
	var alerts models.PostableAlerts
	d := json.NewDecoder(bytes.NewReader(text))
	d.DisallowUnknownFields()
	if err := d.Decode(&alerts); err != nil {
		t.Fatal(err)
	}
	if err := alerts.Validate(strfmt.Default); err != nil {
		t.Error(err)
	}
	if len(alerts) != 2 {
		t.Fatalf("got %d alerts, want one that holds and one that has ended", len(alerts))
	}
	firing, ended := alerts[0], alerts[1]
	if time.Time(firing.EndsAt).Sub(time.Time(ended.EndsAt)) != time.Hour || firing.Labels["alertname"] != "TidemarkFleetSplit" {
		t.Errorf("got %+v and %+v", firing, ended)
	}
	for name, value := range firing.Labels {
		if ended.Labels[name] != value {
			t.Errorf("label %s: %q, and at the end %q", name, value, ended.Labels[name])
		}
	}
}
