package cli

import (
	"cmp"

	"github.com/deadletteroffice/dlo/internal/api"
	"github.com/deadletteroffice/dlo/internal/topology"
)

// These types are the part of SARIF 2.1.0 (OASIS) that a list of findings needs.
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
		Name  string      `json:"name"`
		Rules []sarifRule `json:"rules"`
	}
	sarifRule struct {
		ID string `json:"id"`
	}
	sarifResult struct {
		Rule      string          `json:"ruleId"`
		Level     string          `json:"level"`
		Message   sarifText       `json:"message"`
		Locations []sarifLocation `json:"locations"`
	}
	sarifText struct {
		Text string `json:"text"`
	}
	sarifLocation struct {
		Physical *sarifPhysical `json:"physicalLocation,omitempty"`
		Logical  []sarifLogical `json:"logicalLocations"`
	}
	sarifPhysical struct {
		Artifact sarifArtifact `json:"artifactLocation"`
		Region   sarifRegion   `json:"region"`
	}
	sarifArtifact struct {
		URI string `json:"uri"`
	}
	sarifRegion struct {
		Line int `json:"startLine"`
	}
	sarifLogical struct {
		Name string `json:"fullyQualifiedName"`
		Kind string `json:"kind"`
	}
)

// levels is a map from the severity of a finding to a SARIF level.
var levels = map[string]string{"page": "error", "notify": "warning", "digest": "note"}

// sarif returns the findings as a SARIF log. The parameter "file" is the name of the definitions
// file, and "text" is its content. Each finding names the line of its queue in this file, so that a
// code review can show the finding there.
func sarif(findings []api.Finding, file string, text []byte) sarifLog {
	run := sarifRun{Tool: sarifTool{sarifDriver{Name: "dlo"}}, Results: []sarifResult{}}
	for _, kind := range topology.Kinds() {
		run.Tool.Driver.Rules = append(run.Tool.Driver.Rules, sarifRule{string(kind)})
	}
	lines := topology.QueueLines(text)
	for _, f := range findings {
		at := sarifLocation{Logical: []sarifLogical{{Name: f.VHost + "/" + f.Queue, Kind: "resource"}}}
		if file != "" {
			at.Physical = &sarifPhysical{
				sarifArtifact{file},
				sarifRegion{
					cmp.Or(lines[topology.QueueAt{
						VHost: f.VHost,
						Name:  f.Queue,
					}], lines[topology.QueueAt{Name: f.Queue}], 1),
				},
			}
		}
		run.Results = append(run.Results, sarifResult{
			Rule:      f.Kind,
			Level:     levels[f.Severity],
			Message:   sarifText{f.Title + ". Lost: " + f.Loses + ". " + f.Why + " " + f.Cure},
			Locations: []sarifLocation{at},
		})
	}
	return sarifLog{Schema: "https://json.schemastore.org/sarif-2.1.0.json", Version: "2.1.0", Runs: []sarifRun{run}}
}
