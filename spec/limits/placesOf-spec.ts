import { expect } from 'chai';
import { placesOf } from '../../lib/limits/placesOf.ts';

describe('placesOf', () => {
  it('is one place by the name that was asked for, where none is told', () => {
    expect(placesOf('m', {})).to.deep.equal([{ name: 'm', client: 'main', model: 'm', deployment: {} }]);
    const deployment = { client: 'azure', model: 'm-eu' };
    expect(placesOf('m', { deployments: [deployment] })).to.deep.equal([
      { name: 'm', client: 'azure', model: 'm-eu', deployment },
    ]);
  });

  it('names several by their clients, and numbers those at one client from the second on', () => {
    const deployments = [{}, { client: 'azure' }, { client: 'main', model: 'b' }, { client: 'azure' }, {}];
    expect(placesOf('m', { deployments }).map(({ name }) => name)).to.deep.equal([
      'm@main',
      'm@azure',
      'm@main#2',
      'm@azure#2',
      'm@main#3',
    ]);
  });

  it('takes the client of the model for deployments that name none', () => {
    const places = placesOf('m', { client: 'azure', deployments: [{}, { client: 'main' }, { client: 'azure' }] });
    expect(places.map(({ name, client }) => [name, client])).to.deep.equal([
      ['m@azure', 'azure'],
      ['m@main', 'main'],
      ['m@azure#2', 'azure'],
    ]);
  });

  it('refuses a model that is served nowhere', () => {
    expect(() => placesOf('m', { deployments: [] }))
      .to.throw('models.m.deployments must be a list of at least one')
      .with.property('code', 'invalid_option');
  });
});
