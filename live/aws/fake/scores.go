package fake

import (
	"encoding/xml"
	"net/url"
	"strconv"
)

type scoresAnswer struct {
	XMLName   xml.Name    `xml:"http://ec2.amazonaws.com/doc/2016-11-15/ GetSpotPlacementScoresResponse"`
	RequestID string      `xml:"requestId"`
	Items     []scoreItem `xml:"spotPlacementScoreSet>item"`
	NextToken string      `xml:"nextToken,omitempty"`
}

type scoreItem struct {
	ZoneID string `xml:"availabilityZoneId"`
	Region string `xml:"region"`
	Score  int    `xml:"score"`
}

// getSpotPlacementScores answers with the scores of the first type in the
// zones of the regions named. A configuration is the type and the regions.
func (s *Server) getSpotPlacementScores(form url.Values) (any, *apiError) {
	kinds, regions := numbered(form, "InstanceType"), numbered(form, "RegionName")
	if len(kinds) == 0 || form.Get("SingleAvailabilityZone") != "true" || form.Get("TargetCapacity") == "" {
		return nil, badParameter("InstanceType, SingleAvailabilityZone and TargetCapacity are expected")
	}
	key := url.Values{"t": kinds, "r": regions, "n": {form.Get("TargetCapacity")}}.Encode()
	if !s.scored[key] && s.faults.ScoresMax > 0 && len(s.scored) >= s.faults.ScoresMax {
		return nil, errScores
	}
	s.scored[key] = true
	var items []scoreItem
	for _, name := range regions {
		if r := s.state.Regions[name]; r != nil {
			for _, z := range r.Zones {
				items = append(items, scoreItem{z.ID, name, r.Scores[kinds[0]][z.ID]})
			}
		}
	}
	most, err := strconv.Atoi(form.Get("MaxResults"))
	if err != nil {
		most = 10
	}
	begin, end, next, no := s.page(form.Get("NextToken"), "scores "+key, len(items), most)
	if no != nil {
		return nil, no
	}
	return scoresAnswer{RequestID: "0", Items: items[begin:end], NextToken: next}, nil
}
