package report

import (
	"net/url"
	"path"
	"path/filepath"

	"tidemark.dev/tidemark/internal/check"
)

// The parts of SARIF 2.1.0 that are written. Its schema is the judge, in a test.
type (
	sarifLog struct {
		Schema  string     `json:"$schema"`
		Version string     `json:"version"`
		Runs    []sarifRun `json:"runs"`
	}
	sarifRun struct {
		Tool    sarifTool     `json:"tool"`
		Results []sarifResult `json:"results"`
	}
	sarifTool struct {
		Driver sarifDriver `json:"driver"`
	}
	sarifDriver struct {
		Name           string      `json:"name"`
		Version        string      `json:"version,omitempty"`
		InformationURI string      `json:"informationUri"`
		Rules          []sarifRule `json:"rules"`
	}
	sarifRule struct {
		ID                   string             `json:"id"`
		ShortDescription     sarifText          `json:"shortDescription"`
		FullDescription      sarifText          `json:"fullDescription"`
		Help                 sarifText          `json:"help"`
		DefaultConfiguration sarifConfiguration `json:"defaultConfiguration"`
	}
	sarifConfiguration struct {
		Level string `json:"level"`
	}
	sarifText struct {
		Text string `json:"text"`
	}
	sarifResult struct {
		RuleID              string             `json:"ruleId"`
		RuleIndex           int                `json:"ruleIndex"`
		Level               string             `json:"level"`
		Message             sarifText          `json:"message"`
		Locations           []sarifLocation    `json:"locations"`
		PartialFingerprints map[string]string  `json:"partialFingerprints"`
		Suppressions        []sarifSuppression `json:"suppressions,omitempty"`
		Properties          map[string]string  `json:"properties"`
	}
	sarifLocation struct {
		Physical sarifPhysical  `json:"physicalLocation"`
		Logical  []sarifLogical `json:"logicalLocations"`
	}
	sarifPhysical struct {
		Artifact sarifArtifact `json:"artifactLocation"`
		Region   sarifRegion   `json:"region"`
	}
	sarifArtifact struct {
		URI       string `json:"uri"`
		URIBaseID string `json:"uriBaseId"`
	}
	sarifRegion struct {
		StartLine int `json:"startLine"`
	}
	sarifLogical struct {
		Name               string `json:"name"`
		FullyQualifiedName string `json:"fullyQualifiedName"`
		Kind               string `json:"kind"`
	}
	sarifSuppression struct {
		Kind          string `json:"kind"`
		Justification string `json:"justification"`
	}
)

func (r Report) sarif() sarifLog {
	run := sarifRun{Results: []sarifResult{}}
	run.Tool.Driver = sarifDriver{Name: "tidemark", Version: r.Version, InformationURI: "https://tidemark.dev", Rules: []sarifRule{}}
	index := map[check.RuleID]int{}
	for i, rule := range check.Rules() {
		index[rule.ID] = i
		run.Tool.Driver.Rules = append(run.Tool.Driver.Rules, sarifRule{
			ID: string(rule.ID), ShortDescription: sarifText{rule.Summary}, FullDescription: sarifText{rule.Detail}, Help: sarifText{rule.Fix},
			DefaultConfiguration: sarifConfiguration{string(rule.Severity)},
		})
	}
	for _, f := range r.Findings {
		result := sarifResult{
			RuleID: string(f.Rule), RuleIndex: index[f.Rule], Level: string(f.Severity), Message: sarifText{f.Why + " " + f.Fix},
			Locations: []sarifLocation{location(f)}, PartialFingerprints: map[string]string{"tidemark/v1": f.Fingerprint},
			Properties: map[string]string{"confidence": f.Confidence},
		}
		if f.Excused != nil {
			result.Suppressions = []sarifSuppression{{"inSource", f.Excused.Reason}}
		}
		run.Results = append(run.Results, result)
	}
	return sarifLog{
		Schema: "https://docs.oasis-open.org/sarif/sarif/v2.1.0/errata01/os/schemas/sarif-schema-2.1.0.json", Version: "2.1.0", Runs: []sarifRun{run},
	}
}

func location(f check.Finding) sarifLocation {
	file, line := place(f.At)
	qualified := f.Object
	if f.Key != "" {
		qualified += "/" + f.Key
	}
	return sarifLocation{
		Physical: sarifPhysical{sarifArtifact{uri(file), "%SRCROOT%"}, sarifRegion{line}},
		Logical:  []sarifLogical{{path.Base(f.Object), qualified, "resource"}},
	}
}

// uri is a path as a reference relative to the repository; the URL of a remote base is one by itself.
func uri(file string) string {
	if remote, err := url.Parse(file); err == nil && remote.Host != "" {
		return remote.String()
	}
	return (&url.URL{Path: filepath.ToSlash(file)}).String()
}
