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
  return deployments.map((deployment, i) => {
    const client = deployment.client ?? options.client ?? ADMISSION_DEFAULTS.client;
    const name = deployments.length === 1 ? model : `${model}@${client}${sameBefore(deployments, i, client)}`;
    return { name, client, model: deployment.model ?? model, deployment };
  });
}

/** Deployments at one client are numbered from the second on. */
function sameBefore(deployments: readonly DeploymentOptions[], index: number, client: string): string {
  const before = deployments.slice(0, index).filter((other) => (other.client ?? client) === client).length;
  return before === 0 ? '' : `#${before + 1}`;
}
