"""A plan from reports, for whatever the machine has."""

from appliance.documents import Plan, Recon
from appliance.plan.cpu import plan_on_cpu
from appliance.plan.gpu import Wishes, plan_on_gpus
from appliance.plan.model_place import planned_model


def make_plan(found: Recon, wishes: Wishes) -> Plan:
    """A plan from three reports: on GPUs where the machine has some, on its CPUs where it has none.

    Raises InputError where the reports do not tell enough, CheckFailed where nothing fits.
    """
    if found.machine.gpus:
        return plan_on_gpus(found.machine, found.model, found.engine, wishes)
    place = planned_model(found.model, wishes.model_path, wishes.served_name)
    model = found.model.model_copy(update={"path": place.path})
    return plan_on_cpu(wishes.topology or "pd", model, found.machine, found.engine, place.served_name, wishes.ports)
