package fake

// advisor serves the file of the Spot Instance Advisor.
type advisor struct{ *Server }

func (a advisor) answer(*Call, []byte) (answer, *apiError) {
	type entry struct {
		Savings int `json:"s"`
		Band    int `json:"r"`
	}
	regions := map[string]map[string]map[string]entry{}
	for name, r := range a.state.Regions {
		types := map[string]entry{}
		for kind, band := range r.Bands {
			types[kind] = entry{Savings: 70, Band: band}
		}
		regions[name] = map[string]map[string]entry{"Linux": types, "Windows": {}}
	}
	if code := a.faults.Deny["SpotAdvisor"]; code != "" {
		return answer{}, denied(code)
	}
	return answer{"application/json",
		marshalJSON(map[string]map[string]map[string]map[string]entry{"spot_advisor": regions})}, nil
}

func (a advisor) refuse(no *apiError) answer {
	return answer{"text/plain", []byte(no.message)}
}
