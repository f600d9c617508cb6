package karpenterawsdiff

import (
	"context"
	"errors"
	"net/http"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/ec2"
	ec2types "github.com/aws/aws-sdk-go-v2/service/ec2/types"
	v1 "github.com/aws/karpenter-provider-aws/pkg/apis/v1"
	sdk "github.com/aws/karpenter-provider-aws/pkg/aws"
	awscache "github.com/aws/karpenter-provider-aws/pkg/cache"
	"github.com/aws/karpenter-provider-aws/pkg/providers/amifamily"
	"github.com/aws/karpenter-provider-aws/pkg/providers/instance"
	"github.com/aws/karpenter-provider-aws/pkg/providers/launchtemplate"
	"github.com/aws/karpenter-provider-aws/pkg/providers/placementgroup"
	"github.com/aws/karpenter-provider-aws/pkg/providers/subnet"
	"github.com/patrickmn/go-cache"
	karpv1 "sigs.k8s.io/karpenter/pkg/apis/v1"
	"sigs.k8s.io/karpenter/pkg/cloudprovider"
)

// errCaptured ends a launch once its request is known.
var errCaptured = errors.New("captured")

// An ec2API keeps the request of a launch and refuses it.
type ec2API struct {
	sdk.EC2API
	input *ec2.CreateFleetInput
}

func (a *ec2API) CreateFleet(_ context.Context, in *ec2.CreateFleetInput, _ ...func(*ec2.Options)) (*ec2.CreateFleetOutput, error) {
	a.input = in
	return nil, errCaptured
}

// subnets has one subnet in each zone.
type subnets []string

func (subnets) LivenessProbe(*http.Request) error { return nil }
func (subnets) List(context.Context, *v1.EC2NodeClass) ([]ec2types.Subnet, error) {
	return nil, nil
}
func (s subnets) ZonalSubnetsForLaunch(context.Context, *v1.EC2NodeClass, []*cloudprovider.InstanceType,
	string) (map[string]*subnet.Subnet, error) {
	out := make(map[string]*subnet.Subnet)
	for _, z := range s {
		out[z] = &subnet.Subnet{ID: "subnet-" + z, Zone: z}
	}
	return out, nil
}
func (subnets) UpdateInflightIPs(*ec2.CreateFleetInput, *ec2.CreateFleetOutput, []*cloudprovider.InstanceType, []*subnet.Subnet, string) {
}
func (subnets) UpdateICEdSubnet(string) {}

// templates has one launch template for all instance types.
type templates struct{}

func (templates) EnsureAll(_ context.Context, _ *v1.EC2NodeClass, _ *karpv1.NodeClaim,
	its []*cloudprovider.InstanceType, _ string, _ map[string]string, _ string) ([]*launchtemplate.LaunchTemplate, error) {
	return []*launchtemplate.LaunchTemplate{{Name: "template", InstanceTypes: its, ImageID: "ami"}}, nil
}
func (templates) DeleteAll(context.Context, *v1.EC2NodeClass) error { return nil }
func (templates) InvalidateCache(context.Context, string, string)   {}
func (templates) ResolveClusterCIDR(context.Context) error          { return nil }
func (templates) CreateAMIOptions(context.Context, *v1.EC2NodeClass, map[string]string, map[string]string) (*amifamily.Options, error) {
	return nil, nil
}

// noGroups has no placement group.
type noGroups struct{}

func (noGroups) Get(context.Context, placementgroup.NodeClass) (*placementgroup.PlacementGroup, error) {
	return nil, nil
}

// request returns the request that Karpenter's provider sends to EC2 Fleet, or nil if it
// sends none.
func request(ctx context.Context, zones []string, claim *karpv1.NodeClaim,
	types []*cloudprovider.InstanceType) (*ec2.CreateFleetInput, error) {
	api := &ec2API{}
	p := instance.NewDefaultProvider(ctx, "us-east-1", nil, api, awscache.NewUnavailableOfferings(), subnets(zones), templates{}, nil,
		noGroups{}, nil, cache.New(time.Hour, time.Hour))
	_, err := p.Create(ctx, &v1.EC2NodeClass{}, claim, nil, types)
	if api.input == nil && !cloudprovider.IsInsufficientCapacityError(err) {
		return nil, err
	}
	return api.input, nil
}
