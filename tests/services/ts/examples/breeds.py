"""As the second node of TorchServe's dog-breed workflow: it reads two nodes, and classifies the dogs alone."""

from ts.torch_handler.image_classifier import ImageClassifier


class DogBreedClassifier(ImageClassifier):
    def preprocess(self, data):
        self.is_dog = [row.get("cat_dog_classification").decode() == "dog" for row in data]
        images = [row.get("pre_processing").decode() for row in data]
        dogs = [{"body": image} for image, is_dog in zip(images, self.is_dog, strict=True) if is_dog]
        return ImageClassifier.preprocess(self, dogs) if dogs else None

    def inference(self, data, *args, **kwargs):
        return None if data is None else ImageClassifier.inference(self, data, *args, **kwargs)

    def postprocess(self, data):
        breeds = iter([] if data is None else ImageClassifier.postprocess(self, data))
        return [next(breeds) if is_dog else "It's a cat!" for is_dog in self.is_dog]
