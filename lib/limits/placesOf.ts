import { invalidOption } from '../core/errors.ts';
import { ADMISSION_DEFAULTS } from './AdmissionOptions.ts';
import type { DeploymentOptions, ModelAdmissionOptions } from './AdmissionOptions.ts';

/** Where a model is served. */
export interface Place {
  /** Of the model; where it has several deployments, `model@client`. */
  readonly name: string;
  readonly client: string;
  /** The name the model has there. */
  readonly model: string;
  readonly deployment: DeploymentOptions;
}

/** @throws SluiceError `invalid_option` for an empty list */
export function placesOf(model: string, options: ModelAdmissionOptions): readonly Place[] {
  const { deployments = [{}] } = options;
  if (deployments.length === 0) {
    throw invalidOption(`models.${model}.deployments`, 'a list of at least one', deployments);
  }
  const clients = deployments.map(({ client }) => client ?? options.client ?? ADMISSION_DEFAULTS.client);
  return deployments.map((deployment, i) => {
    const client = clients[i] as string;
    const name = deployments.length === 1 ? model : `${model}@${client}${numberOf(clients, i)}`;
    return { name, client, model: deployment.model ?? model, deployment };
  });
}

/** Deployments at one client are numbered from the second on. */
function numberOf(clients: readonly string[], index: number): string {
  const before = clients.slice(0, index).filter((other) => other === clients[index]).length;
  return before === 0 ? '' : `#${before + 1}`;
}
